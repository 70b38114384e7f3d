/// What a short window overwrites in a sequence, so that its last tokens can be taken back: recurrent memory
/// cannot be truncated. The matrices are kept as they were before the window, with each row's inputs; cutting
/// back runs the recurrence again over the rows that stay, which gives the bits of never having gone further.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory_budget.h"
#include "kernels/context.h"
#include "model/config.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace forebay {

class SequenceState;

/// Confined.
class WindowUndo {
 public:
  static constexpr int64_t kMaxRows = 8;

  /// Errors: kOutOfMemory.
  static Result<std::unique_ptr<WindowUndo>> create(const ModelConfig& config, MemoryBudget& budget);

  /// The next window is recorded.
  void arm(SequenceState& state);
  bool armed() const { return phase_ == Phase::kArmed; }
  bool is_complete() const { return phase_ == Phase::kComplete; }
  int64_t n_rows() const { return n_rows_; }
  void forget();

  // While armed, from the layers, before they change the state. At most kMaxRows rows.
  void record_conv(int block, std::span<const float> conv, TensorView<const float> inputs);
  void record_delta(int block, std::span<const float> matrix, TensorView<const float> k,
                    TensorView<const float> v, TensorView<const float> decay, TensorView<const float> beta);
  void record_ngram(std::span<const float> conv, TensorView<const float> inputs);
  /// Every layer has run.
  void complete(std::span<const int32_t> tokens);

  /// Gives the state's recurrent parts the bits they have after n of the window's rows. Returns the token
  /// tail: the one before the window and the n tokens.
  std::vector<int32_t> cut(KernelContext& ctx, const ModelConfig& config, int64_t n, SequenceState& state);

 private:
  enum class Phase { kIdle, kArmed, kComplete };

  struct GatedDelta {
    std::span<float> matrix, conv;
    TensorView<float> conv_inputs, k, v, decay, beta;
  };
  struct Ring {
    std::span<float> rows;  // the kMaxRows slots that come next
  };

  WindowUndo() = default;

  Phase phase_ = Phase::kIdle;
  int64_t n_rows_ = 0;
  int64_t first_cell_ = 0;
  std::vector<int32_t> tail_, tokens_;
  std::vector<GatedDelta> gated_delta_;  // per block
  std::vector<Ring> rings_;              // per block
  std::span<float> ngram_conv_;
  TensorView<float> ngram_inputs_;
  TensorView<float> out_;  // of the recurrence, which nobody reads
  Buffer buffer_;
};

}  // namespace forebay
