/// A loaded model and its forward pass.
#pragma once

#include <memory>
#include <span>

#include "core/memory_budget.h"
#include "core/storage.h"
#include "experts/expert_cache.h"
#include "gguf/gguf.h"
#include "kernels/context.h"
#include "model/config.h"
#include "model/layers/layers.h"
#include "model/state.h"
#include "model/weights.h"
#include "model/window.h"

namespace forebay {

struct ModelOptions {
  /// Changes speed. Most rows of one window; scratch grows with it. 1 to 65536.
  int64_t max_window = 256;
  /// Changes speed. Load the draft head when the file has one.
  bool mtp = true;
  /// Changes speed.
  ExpertPlacement experts = ExpertPlacement::kMapped;
  ExpertCacheOptions cache = {};  // its budget counts with kStreamed
  /// Changes speed. A pack of the file's experts to read them from; empty: the file itself.
  Path expert_pack = {};
  /// Changes speed. What every token reads is copied into memory of huge pages, not read in the mapped file.
  bool copy_trunk = false;
  /// Changes results. How new_state keeps keys and values.
  KvType kv = KvType::kF32;
  /// Changes results.
  RoutingOptions routing = {};
  /// Sees every routed row; must outlive the model.
  RouteObserver* trace = nullptr;
};

/// Confined: one forward pass at a time.
class Model {
 public:
  /// `mtp_file` is a separate draft head, or null. The files and the context must outlive the model.
  static Result<Model> load(Storage& storage, const GgufFile& file, const GgufFile* mtp_file,
                            const ModelOptions& options, KernelContext& ctx, MemoryBudget& budget);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelConfig& config() const;
  int64_t max_window() const;
  const RoutingOptions& routing() const;
  bool has_mtp() const;
  KernelContext& kernels();
  /// Null when experts are mapped or there are none.
  ExpertCache* expert_cache();
  /// Of the trunk and the draft head, copied; 0 where they are read in the mapped file.
  uint64_t trunk_copy_bytes() const;
  double trunk_copy_seconds() const;  // that copying took
  /// Of the n-gram table's rows held in memory: those used last of a large table, all of a small one.
  uint64_t ngram_bytes() const;

  Result<SequenceState> new_state(int64_t context);

  /// The state's next window, of at most WindowUndo::kMaxRows tokens, can be cut back by keep().
  /// Errors: kOutOfMemory, the first time for a state.
  Result<void> arm_undo(SequenceState& state);
  /// Keeps the first n of the tokens of the last window: the state has the bits of never having run the
  /// others. Draft rows beyond its cells are dropped too. Once per window. Errors: kInvalidArgument.
  Result<void> keep(SequenceState& state, int64_t n);

  /// Appends every span's tokens to its state. A row's logits do not depend on the other rows of the window,
  /// on how a sequence is split into windows, or on the number of threads: equal bits. Errors, all found
  /// before any state changes: a token outside the vocabulary, a full context, a window that is empty or too
  /// large. Found later, when the states are reset: an expert that cannot be read, and kCorrupt naming the
  /// tensor at fault when logits are not finite.
  Result<ForwardOutput> forward(std::span<const Span> window);

  /// The output head alone, over `head_rows` kept from earlier passes: [rows, d_model] to [rows, n_vocab], at
  /// most max_window() rows; borrowed until the next pass. Errors: kInvalidArgument for another shape.
  Result<TensorView<const float>> head(TensorView<const float> rows);

  /// The draft head over one sequence: row i reads hidden row i (position p) and the token at p + 1, and
  /// predicts the token at p + 2. Rows are appended to the state's draft rows; returned logits and hidden
  /// (the head's own residual, for a further draft step) have one row each per input row.
  /// Errors: kUnsupported without a draft head.
  Result<ForwardOutput> draft(SequenceState& state, TensorView<const float> hidden,
                              std::span<const int32_t> next_tokens, LogitRows rows);

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
