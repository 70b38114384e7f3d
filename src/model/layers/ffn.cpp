#include <algorithm>

#include "kernels/activation.h"
#include "kernels/expert_ffn.h"
#include "kernels/matmul.h"
#include "kernels/router.h"
#include "model/layers/layers.h"

namespace forebay {
namespace {

void swiglu(LayerContext& lc, const MatrixView& gate_w, const MatrixView& up_w, const MatrixView& down_w,
            TensorView<const float> x, TensorView<float> y) {
  const TensorView<float> gate(lc.scratch.ffn_gate.data, x.rows, gate_w.n_rows);
  const TensorView<float> up(lc.scratch.ffn_up.data, x.rows, up_w.n_rows);
  matmul(lc.kernels, gate_w, x, gate);
  matmul(lc.kernels, up_w, x, up);
  silu_mul(lc.kernels, gate, up, gate);
  matmul(lc.kernels, down_w, gate, y);
}

/// Slot t * used + rank holds row t's expert of that rank. Sorts the slots by expert, so that an expert's
/// rows come together.
void group_by_expert(LayerContext& lc, const FfnWeights& w, int64_t T) {
  Scratch& s = lc.scratch;
  const int used = lc.config.ffn.n_used;
  const auto n_slots = static_cast<size_t>(T * used);
  std::fill(s.expert_counts.begin(), s.expert_counts.end(), 0);
  for (size_t slot = 0; slot < n_slots; ++slot) ++s.expert_counts[s.expert_ids[slot] + 1];
  for (size_t e = 1; e < s.expert_counts.size(); ++e) s.expert_counts[e] += s.expert_counts[e - 1];

  s.expert_calls.clear();
  for (int e = 0; e < lc.config.ffn.n_experts; ++e) {
    const size_t first = s.expert_counts[e];
    const size_t n = s.expert_counts[e + 1] - first;
    if (n == 0) continue;
    s.expert_calls.push_back({w.expert_gate.expert(e), w.expert_up.expert(e), w.expert_down.expert(e),
                              std::span(s.sorted_rows).subspan(first, n),
                              std::span(s.sorted_slots).subspan(first, n)});
  }
  for (size_t slot = 0; slot < n_slots; ++slot) {
    const int32_t at = s.expert_counts[s.expert_ids[slot]]++;
    s.sorted_rows[at] = static_cast<int32_t>(slot) / used;
    s.sorted_slots[at] = static_cast<int32_t>(slot);
  }
}

}  // namespace

void ffn_layer(LayerContext& lc, const FfnWeights& w, TensorView<const float> x, TensorView<float> y) {
  const FfnConfig& f = lc.config.ffn;
  if (f.n_experts == 0) return swiglu(lc, w.gate, w.up, w.down, x, y);

  KernelContext& kernels = lc.kernels;
  Scratch& s = lc.scratch;
  const int64_t T = x.rows;
  const int used = f.n_used;
  const TensorView<float> logits = s.router_logits.slice_rows(0, T);
  matmul(kernels, w.router, x, logits);
  for (int64_t t = 0; t < T; ++t)
    route_top_k({logits.row(t), static_cast<size_t>(f.n_experts)}, used, &s.expert_ids[t * used],
                &s.expert_weights[t * used]);
  group_by_expert(lc, w, T);

  const int64_t n_slots = T * used;
  const TensorView<float> out = s.expert_out_SD.slice_rows(0, n_slots);
  expert_ffn(kernels, s.expert_calls, x, s.expert_hidden_SF.slice_rows(0, n_slots),
             s.expert_scratch_SF.slice_rows(0, n_slots), out);

  const bool shared = f.d_shared > 0;
  if (shared) {
    swiglu(lc, w.shared_gate, w.shared_up, w.shared_down, x, s.shared_out.slice_rows(0, T));
    matmul(kernels, w.shared_router, x, s.shared_weight.slice_rows(0, T));
  }
  // Ranks in order, then the shared expert: a row's sum has one order whatever its window.
  kernels.pool().parallel_for(T, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      float* to = y.row(t);
      std::fill(to, to + y.cols, 0.0f);
      for (int rank = 0; rank < used; ++rank) {
        const float weight = s.expert_weights[t * used + rank] * f.weights_scale;
        const float* from = out.row(t * used + rank);
        for (int64_t d = 0; d < y.cols; ++d) to[d] += weight * from[d];
      }
      if (!shared) continue;
      const float weight = sigmoid(s.shared_weight.row(t)[0]);
      const float* from = s.shared_out.row(t);
      for (int64_t d = 0; d < y.cols; ++d) to[d] += weight * from[d];
    }
  });
}

}  // namespace forebay
