/// Everything one sequence remembers: K/V rows, index keys, recurrent matrices, convolution tails, token tail
/// and the draft head's rows. They move together or not at all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/memory_budget.h"
#include "kernels/block_codes.h"
#include "kernels/kv_rows.h"
#include "model/config.h"
#include "model/window_undo.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace forebay {

/// K/V rows of one attention layer, rotated before they are kept, and its block index.
struct AttentionState {
  KvRows keys;
  KvRows values;
  std::span<float> pooled;  // [complete blocks][index head_dim], normed and rotated; empty on dense layers
  std::span<float> raw;     // ring of the last kRawRing raw index keys, slot = cell mod kRawRing
  // What can be made again of `pooled` and is not saved: codes of its first n_coded rows. Who writes rows
  // lowers n_coded to the first of them.
  BlockCodes codes;
  int64_t n_coded = 0;

  /// Raw keys of an unfinished block must survive a verification window of 8 rows and the block before it.
  static constexpr int64_t kRawRing = 64;
};

/// Recurrent memory of one gated-delta layer.
struct GatedDeltaState {
  std::span<float> matrix;  // [n_v_heads][k_dim][v_dim]
  std::span<float> conv;    // [conv_kernel - 1][channels], oldest first, inputs before the convolution
};

/// A named piece of a sequence's memory. All state memory but codes of index keys is handed out as sections,
/// so that what is saved is everything by construction.
struct StateSection {
  std::string name;            // "blk.3.attn.keys"
  std::span<std::byte> bytes;  // of a growing section, the rows of `context` cells, up to a cache line
  uint64_t row_bytes = 0;      // of a fixed one, all of it
  int64_t cells_per_row = 0;   // 0: fixed
  bool draft = false;          // rows grow with the draft head's cells

  bool is_fixed() const { return cells_per_row == 0; }
  /// Rows that hold something at these lengths; 1 of a fixed section.
  int64_t n_rows(int64_t n_cells, int64_t n_mtp_cells) const {
    return is_fixed() ? 1 : (draft ? n_mtp_cells : n_cells) / cells_per_row;
  }
};

/// A copy of what cannot be truncated, at one position. Rows of K/V stay in the sequence: a snapshot is
/// usable as long as the cells before it have not been rewritten.
struct Snapshot {
  int64_t n_cells = 0;
  int64_t n_mtp_cells = 0;
  std::vector<int32_t> token_tail;
  std::vector<float> fixed;

  uint64_t bytes() const { return fixed.size() * sizeof(float) + token_tail.size() * sizeof(int32_t); }
};

/// Confined. The forward pass appends; callers snapshot, restore and reset.
class SequenceState {
 public:
  /// Reserves everything for `context` cells from the budget; pages are committed as cells are written.
  static Result<SequenceState> create(const ModelConfig& config, int64_t context, bool with_mtp, KvType kv,
                                      MemoryBudget& budget);
  SequenceState(SequenceState&&) = default;
  SequenceState& operator=(SequenceState&&) = default;

  int64_t n_cells() const { return n_cells_; }
  int64_t context() const { return context_; }
  /// Whether there is memory that cannot be cut back: a snapshot copies it.
  bool is_recurrent() const { return recurrent_; }
  uint64_t fixed_bytes() const { return fixed_.size_bytes(); }

  Snapshot snapshot() const;
  /// Errors: kInvalidArgument when the snapshot is of another shape or lies ahead of this state.
  Result<void> restore(const Snapshot& snapshot);
  /// Whether rewind(to) succeeds.
  bool can_rewind(int64_t to) const;
  /// Drops the cells from `to` on. Rows can be dropped, recurrent memory cannot: a sequence that has any goes
  /// back by restore(), and its tokens from there are run again. Errors: kInvalidArgument.
  Result<void> rewind(int64_t to);
  /// Back to an empty sequence.
  void reset();

  /// Every byte that create() reserved but derived_bytes() of them, in a fixed order; none overlap.
  std::span<const StateSection> sections() const { return sections_; }
  /// Of what is made again from the sections.
  uint64_t derived_bytes() const { return derived_bytes_; }
  /// The same piece of `s` as `section` is of this state: s.fixed has the layout of the fixed sections.
  std::span<const std::byte> bytes_in(const Snapshot& s, const StateSection& section) const;
  /// After the sections were filled from elsewhere: what else is known of a sequence of these tokens.
  void adopt(std::span<const int32_t> tokens, int64_t n_mtp_cells);

  /// Makes windows of at most WindowUndo::kMaxRows tokens reversible (Model::keep). Errors: kOutOfMemory.
  Result<void> enable_undo(const ModelConfig& config, MemoryBudget& budget);
  /// The next window of this sequence can be cut back. Wants enable_undo().
  void arm_undo();

  // For the forward pass.
  /// The draft head's block comes after the trunk's.
  AttentionState& attention(int block) {
    return static_cast<size_t>(block) < attention_.size() ? attention_[block] : mtp_;
  }
  GatedDeltaState& gated_delta(int block) { return gated_delta_[block]; }
  AttentionState& mtp() { return mtp_; }
  bool has_mtp() const { return !mtp_.keys.empty(); }
  int64_t n_mtp_cells() const { return n_mtp_cells_; }
  std::span<float> ngram_conv() { return ngram_conv_; }
  /// The last ngram_size - 1 tokens, newest last; fewer near the start.
  std::span<const int32_t> token_tail() const { return token_tail_; }
  /// Called once per window after every layer has run.
  void advance(std::span<const int32_t> tokens);
  void advance_mtp(int64_t n) { n_mtp_cells_ += n; }
  /// Drops draft rows from `to` on.
  void rewind_mtp(int64_t to) { n_mtp_cells_ = std::min(n_mtp_cells_, to); }
  /// Where layers leave what this window overwrites; null unless armed.
  WindowUndo* undo() { return undo_ && undo_->armed() ? undo_.get() : nullptr; }
  /// Keeps the first n of the tokens of the last window, which was armed; Model::keep is the way in.
  Result<void> keep(KernelContext& ctx, const ModelConfig& config, int64_t n);

 private:
  SequenceState() = default;

  int64_t context_ = 0;
  int64_t n_cells_ = 0;
  int64_t n_mtp_cells_ = 0;
  size_t tail_length_ = 0;
  std::vector<AttentionState> attention_;     // per block; empty spans where the block has the other mixer
  std::vector<GatedDeltaState> gated_delta_;  // per block
  AttentionState mtp_;
  std::span<float> ngram_conv_;
  std::vector<int32_t> token_tail_;
  std::span<float> fixed_;  // recurrent matrices, convolution tails, raw rings: one piece
  bool recurrent_ = false;  // has memory that cannot be truncated
  std::vector<StateSection> sections_;
  uint64_t derived_bytes_ = 0;
  std::unique_ptr<WindowUndo> undo_;
  Buffer fixed_buffer_;
  Buffer rows_buffer_;
};

/// What a sequence keeps its rows as unless told otherwise: kInt8 where attention is block-sparse, else kF32.
KvType usual_kv_type(const ModelConfig& config);

/// Whether a sequence has memory that cannot be cut back.
bool has_recurrent_state(const ModelConfig& config);

/// What a sequence costs, without allocating it.
struct StateSize {
  uint64_t fixed_bytes = 0;
  uint64_t bytes_per_cell = 0;  // pooled keys and their codes counted at 1/block_cells per cell
};
StateSize state_size(const ModelConfig& config, bool with_mtp, KvType kv);
/// To the byte: K/V rows, pooled keys and their codes, of `context` cells.
uint64_t state_row_bytes(const ModelConfig& config, int64_t context, bool with_mtp, KvType kv);

}  // namespace forebay
