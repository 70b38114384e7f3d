#include "model/layers/scratch.h"

#include <algorithm>

#include "kernels/context.h"

namespace forebay {
namespace {

/// Runs once to count and once to place: the two can never disagree.
template <typename Take>
void place(Scratch& s, const ModelConfig& c, bool with_mtp, int64_t T, Take take) {
  const int64_t D = c.d_model;
  const int64_t W = c.wide();
  s.residual_TW = take(T, W);
  s.input_TD = take(T, D);
  s.output_TD = take(T, D);
  s.final_TW = take(T, W);
  s.final_TD = take(T, D);
  if (c.streams.n_streams > 1) {
    s.normed_TW = take(T, W);
    s.gate_TW = take(T, W);
    s.low_TR = take(T, c.streams.low_rank);
    s.inject_TH = take(T, c.streams.n_streams);
  }

  const AttentionConfig& a = c.attention;
  const int64_t q = static_cast<int64_t>(a.shape.n_heads) * a.shape.head_dim;
  const int64_t kv = static_cast<int64_t>(a.shape.n_kv_heads) * a.shape.head_dim;
  if (a.output_gate) {
    s.q_and_gate = take(T, 2 * q);
    s.q_gate = take(T, q);
  }
  s.q = take(T, q);
  s.k = take(T, kv);
  s.v = take(T, kv);
  if (c.indexer.n_heads > 0) {
    s.index_q = take(T, static_cast<int64_t>(c.indexer.n_heads) * c.indexer.head_dim);
    s.index_k = take(T, c.indexer.head_dim);
  }

  if (c.has_mixer(MixerKind::kGatedDelta)) {
    const GatedDeltaConfig& g = c.gated_delta;
    const int64_t n_v = g.shape.n_v_heads;
    s.qkv = take(T, g.conv_channels());
    s.conv = take(T, g.conv_channels());
    s.z = take(T, g.value_width());
    s.gd_q = take(T, g.key_width());
    s.gd_k = take(T, g.key_width());
    s.gd_out = take(T, g.value_width());
    s.alpha_beta = take(T, 2 * n_v);
    s.alpha = take(T, n_v);
    s.beta = take(T, n_v);
    s.decay = take(T, n_v);
  }

  const FfnConfig& f = c.ffn;
  const int64_t dense = std::max(f.d_ffn, f.d_shared);
  if (dense > 0) {
    s.ffn_gate = take(T, dense);
    s.ffn_up = take(T, dense);
  }
  if (f.n_experts > 0) {
    s.router_logits = take(T, f.n_experts);
    s.expert_hidden_SF = take(T * f.n_used, f.d_expert);
    s.expert_scratch_SF = take(T * f.n_used, f.d_expert);
    s.expert_out_SD = take(T * f.n_used, D);
    s.shared_out = take(T, D);
    s.shared_weight = take(T, 1);
    s.ahead_TD = take(T, D);
  }

  if (c.ngram.block >= 0) {
    s.ngram_rows = take(T, c.ngram.width());
    s.ngram_value = take(T, D);
    s.ngram_out_TW = take(T, W);
    s.ngram_conv_TW = take(T, W);
  }
  if (with_mtp) s.draft_pairs = take(T * c.streams.n_streams, 2 * D);
}

/// Rows start on cache lines.
int64_t padded(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

}  // namespace

uint64_t Scratch::bytes(const ModelConfig& config, bool with_mtp, int64_t max_rows) {
  Scratch counted;
  int64_t floats = 0;
  place(counted, config, with_mtp, max_rows, [&](int64_t rows, int64_t cols) {
    floats += padded(rows * cols);
    return TensorView<float>();
  });
  return static_cast<uint64_t>(floats) * sizeof(float);
}

Result<Scratch> Scratch::allocate(const ModelConfig& config, bool with_mtp, int64_t max_rows, int n_threads,
                                  MemoryBudget& budget) {
  Scratch s;
  s.max_rows = max_rows;
  s.buffer_ = TRY(Buffer::allocate(budget, bytes(config, with_mtp, max_rows), "scratch"));
  float* next = s.buffer_.as<float>().data();
  place(s, config, with_mtp, max_rows, [&](int64_t rows, int64_t cols) {
    TensorView<float> view(next, rows, cols);
    next += padded(rows * cols);
    return view;
  });
  s.ranges.resize(max_rows);
  s.range_spans.resize(max_rows);
  s.blocks.resize(n_threads);
  const int64_t slots = max_rows * config.ffn.n_used;
  s.expert_ids.resize(slots);
  s.expert_weights.resize(slots);
  s.sorted_rows.resize(slots);
  s.sorted_slots.resize(slots);
  s.expert_starts.resize(config.ffn.n_experts + 1);
  s.expert_cursors.resize(config.ffn.n_experts + 1);
  s.experts_in_use.reserve(config.ffn.n_experts);
  s.expert_calls.reserve(config.ffn.n_experts);
  s.resident_E.resize(config.ffn.n_experts);
  s.ahead_votes_E.resize(config.ffn.n_experts);
  s.ahead_experts.reserve(config.ffn.n_experts);
  return s;
}

}  // namespace forebay
