/// Activations of one window, allocated once for the largest window. T rows unless a name says otherwise.
/// Letters: W wide residual (streams * D), D model width, R low rank, H streams, S slots (T * experts used).
#pragma once

#include <vector>

#include "core/memory_budget.h"
#include "core/page_range.h"
#include "core/recent_pages.h"
#include "kernels/attention.h"
#include "kernels/block_codes.h"
#include "kernels/expert_ffn.h"
#include "kernels/rope.h"
#include "model/config.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace forebay {

/// What a large n-gram table's rows may take in memory, but for those of the window at work.
inline constexpr uint64_t kNgramRowsBytes = uint64_t{64} << 20;

/// What choosing blocks for one row takes.
struct BlockScratch {
  std::vector<float> low, high;       // bounds of scores; `low` is reused for scores
  std::vector<uint32_t> keys, among;  // of select_blocks() and possible_blocks(); of select_among()
  CodedQuery query;
};

struct Scratch {
  int64_t max_rows = 0;

  // The residual, a sub-block's input and its output.
  TensorView<float> residual_TW, input_TD, output_TD;

  // Hyper-connections.
  TensorView<float> normed_TW, gate_TW, low_TR, inject_TH;

  // Attention: q and gate as projected, then apart; keys and values of this window; the indexer's q and raw
  // k.
  TensorView<float> q_and_gate, q, q_gate, k, v, index_q, index_k;
  std::vector<std::vector<CellRange>> ranges;           // per row
  std::vector<std::span<const CellRange>> range_spans;  // the same, as attend() takes them
  std::vector<BlockScratch> blocks;                     // per thread
  std::vector<int64_t> block_positions;                 // first cells of blocks completed in the window

  // Gated delta.
  TensorView<float> qkv, conv, z, gd_q, gd_k, gd_out, alpha_beta, alpha, beta, decay;

  // Feed-forward: dense or shared expert, then the routed ones.
  TensorView<float> ffn_gate, ffn_up, shared_out, shared_weight, router_logits;
  TensorView<float> expert_hidden_SF, expert_scratch_SF, expert_out_SD;
  std::vector<int32_t> expert_ids, sorted_rows, sorted_slots;  // [T * used]
  std::vector<float> expert_weights;                           // [T * used]
  std::vector<int32_t> expert_starts, expert_cursors;          // [experts + 1]
  std::vector<int32_t> experts_in_use;
  std::vector<ExpertCall> expert_calls;
  // Cache-aware routing and reading ahead: what is in memory; what the next block will probably want.
  std::vector<uint8_t> resident_E;
  TensorView<float> ahead_TD;
  std::vector<int32_t> ahead_votes_E, ahead_experts;
  std::vector<float> ahead_weights;

  // n-gram injection.
  TensorView<float> ngram_rows, ngram_value, ngram_out_TW, ngram_conv_TW;
  std::vector<int32_t> ngram_tokens;                      // a part's, and those before it
  std::vector<int32_t> ngram_history;                     // of one position
  std::vector<int64_t> ngram_ids;                         // its table rows
  RecentPages ngram_pages{kNgramRowsBytes / kPageBytes};  // of a large table

  // Final read: rows that get logits. Draft head: [T*H][2D] concatenations.
  TensorView<float> final_TW, final_TD, draft_pairs;

  RopeTable rope;        // of the window's rows
  RopeTable block_rope;  // of blocks completed in the window

  static Result<Scratch> allocate(const ModelConfig& config, bool with_mtp, int64_t max_rows, int n_threads,
                                  MemoryBudget& budget);
  static uint64_t bytes(const ModelConfig& config, bool with_mtp, int64_t max_rows);

 private:
  Buffer buffer_;
};

}  // namespace forebay
