/// Everything one sequence remembers: K/V rows, index keys, recurrent matrices, convolution tails, token tail
/// and the draft head's rows. They move together or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory_budget.h"
#include "model/config.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace forebay {

/// K/V rows of one attention layer, [cell][n_kv_heads * head_dim] f32, and its block index.
struct AttentionState {
  std::span<float> keys;
  std::span<float> values;
  std::span<float> pooled;  // [complete blocks][index head_dim], normed and rotated; empty on dense layers
  std::span<float> raw;     // ring of the last kRawRing raw index keys, slot = cell mod kRawRing

  /// Raw keys of an unfinished block must survive a verification window of 8 rows and the block before it.
  static constexpr int64_t kRawRing = 64;
};

/// Recurrent memory of one gated-delta layer.
struct GatedDeltaState {
  std::span<float> matrix;  // [n_v_heads][k_dim][v_dim]
  std::span<float> conv;    // [conv_kernel - 1][channels], oldest first, inputs before the convolution
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
  static Result<SequenceState> create(const ModelConfig& config, int64_t context, bool with_mtp,
                                      MemoryBudget& budget);
  SequenceState(SequenceState&&) = default;
  SequenceState& operator=(SequenceState&&) = default;

  int64_t n_cells() const { return n_cells_; }
  int64_t context() const { return context_; }

  Snapshot snapshot() const;
  /// Errors: kInvalidArgument when the snapshot is of another shape or lies ahead of this state.
  Result<void> restore(const Snapshot& snapshot);
  /// Back to an empty sequence.
  void reset();

  // For the forward pass.
  AttentionState& attention(int block) { return attention_[block]; }
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
  Buffer fixed_buffer_;
  Buffer rows_buffer_;
};

/// What a sequence costs, without allocating it.
struct StateSize {
  uint64_t fixed_bytes = 0;
  uint64_t bytes_per_cell = 0;  // pooled keys counted at 1/block_cells per cell
};
StateSize state_size(const ModelConfig& config, bool with_mtp);

}  // namespace forebay
