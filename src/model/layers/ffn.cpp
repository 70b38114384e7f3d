#include <algorithm>

#include "kernels/activation.h"
#include "kernels/expert_ffn.h"
#include "kernels/matmul.h"
#include "model/layers/layers.h"

namespace forebay {
namespace {

void swiglu(LayerContext& lc, const MatrixView& gate_w, const MatrixView& up_w, const MatrixView& down_w,
            TensorView<const float> x, TensorView<float> y) {
  const TensorView<float> gate(lc.scratch.ffn_gate.data, x.rows, gate_w.n_rows);
  const TensorView<float> up(lc.scratch.ffn_up.data, x.rows, up_w.n_rows);
  const MatmulOutput both[] = {{gate_w, gate}, {up_w, up}};
  matmul(lc.kernels, both, x);
  silu_mul(lc.kernels, gate, up, gate);
  matmul(lc.kernels, down_w, gate, y);
}

/// Slot t * used + rank holds row t's expert of that rank. Sorts the slots by expert, so that an expert's
/// rows come together, and lists the experts in use, those with most rows first.
void group_by_expert(LayerContext& lc, int64_t T) {
  Scratch& s = lc.scratch;
  const int used = lc.config.ffn.n_used;
  const auto n_slots = static_cast<int32_t>(T * used);
  std::fill(s.expert_starts.begin(), s.expert_starts.end(), 0);
  for (int32_t slot = 0; slot < n_slots; ++slot) ++s.expert_starts[s.expert_ids[slot] + 1];
  s.experts_in_use.clear();
  for (int32_t e = 0; e < lc.config.ffn.n_experts; ++e)
    if (s.expert_starts[e + 1] > 0) s.experts_in_use.push_back(e);
  const auto rows_of = [&](int32_t e) { return s.expert_starts[e + 1]; };
  std::sort(s.experts_in_use.begin(), s.experts_in_use.end(),
            [&](int32_t a, int32_t b) { return rows_of(a) != rows_of(b) ? rows_of(a) > rows_of(b) : a < b; });
  for (size_t e = 1; e < s.expert_starts.size(); ++e) s.expert_starts[e] += s.expert_starts[e - 1];

  std::copy(s.expert_starts.begin(), s.expert_starts.end(), s.expert_cursors.begin());
  for (int32_t slot = 0; slot < n_slots; ++slot) {
    const int32_t at = s.expert_cursors[s.expert_ids[slot]]++;
    s.sorted_rows[at] = slot / used;
    s.sorted_slots[at] = slot;
  }
}

/// The rows of experts that are in memory.
void run_experts(LayerContext& lc, std::span<const ResidentExpert> experts, TensorView<const float> x,
                 int64_t n_slots) {
  Scratch& s = lc.scratch;
  s.expert_calls.clear();
  for (const ResidentExpert& e : experts) {
    const size_t first = s.expert_starts[e.index];
    const size_t n = s.expert_starts[e.index + 1] - first;
    s.expert_calls.push_back({e.gate, e.up, e.down, std::span(s.sorted_rows).subspan(first, n),
                              std::span(s.sorted_slots).subspan(first, n)});
  }
  expert_ffn(lc.kernels, s.expert_calls, x, s.expert_hidden_SF.slice_rows(0, n_slots),
             s.expert_scratch_SF.slice_rows(0, n_slots), s.expert_out_SD.slice_rows(0, n_slots));
}

/// The shared expert's output and, per row, the logit of its weight.
void run_shared_expert(LayerContext& lc, const FfnWeights& w, TensorView<const float> x) {
  swiglu(lc, w.shared_gate, w.shared_up, w.shared_down, x, lc.scratch.shared_out.slice_rows(0, x.rows));
  matmul(lc.kernels, w.shared_router, x, lc.scratch.shared_weight.slice_rows(0, x.rows));
}

/// Chooses the experts of every row and tells who wants to know.
void route(LayerContext& lc, const Batch& batch, int block, TensorView<const float> logits) {
  Scratch& s = lc.scratch;
  const int used = lc.config.ffn.n_used;
  const auto n_experts = static_cast<size_t>(lc.config.ffn.n_experts);
  // One look for the whole window: the requests so far decide, not the moment a read ends.
  if (lc.routing.decode.lambda > 0 || lc.routing.prompt.lambda > 0)
    for (size_t e = 0; e < n_experts; ++e)
      s.resident_E[e] = lc.experts.resident({block, static_cast<int32_t>(e)});
  for (const Batch::Part& part : batch.parts)
    for (int64_t r = 0; r < part.n_rows; ++r) {
      const int64_t t = part.first_row + r;
      const std::span<const float> row(logits.row(t), n_experts);
      int32_t* ids = &s.expert_ids[t * used];
      const RouteBias& bias = part.prompt ? lc.routing.prompt : lc.routing.decode;
      if (bias.lambda > 0 && r < part.n_rows - part.n_exact)
        route_top_k_biased(row, used, bias, s.resident_E, ids, &s.expert_weights[t * used]);
      else
        route_top_k(row, used, ids, &s.expert_weights[t * used]);
      const RoutePhase phase =
          lc.draft ? RoutePhase::kDraft : (part.prompt ? RoutePhase::kPrefill : RoutePhase::kDecode);
      const RouteEvent event{block, part.tokens[r], phase, row, {ids, static_cast<size_t>(used)}};
      lc.experts.on_route(event);
      if (lc.trace != nullptr) lc.trace->on_route(event);
    }
}

/// Names what the next block will probably want, those that most rows would choose first. One row's guess is
/// good for its first few only; many rows together are sure of most.
void read_ahead(LayerContext& lc, const LookAhead& next, int block, int64_t T) {
  if (lc.experts.max_prefetch(block) == 0) return;
  Scratch& s = lc.scratch;
  const FfnConfig& f = lc.config.ffn;
  const TensorView<float> x = s.ahead_TD.slice_rows(0, T);
  const TensorView<float> logits = s.router_logits.slice_rows(0, T);
  next.input(x);
  matmul(lc.kernels, *next.router, x, logits);
  constexpr int kSure = 3;
  constexpr int64_t kManyRows = 16;
  const int k = T < kManyRows ? std::min(kSure, f.n_used) : f.n_used;
  std::fill(s.ahead_votes_E.begin(), s.ahead_votes_E.end(), 0);
  std::vector<int32_t>& experts = s.ahead_experts;
  experts.resize(static_cast<size_t>(k));
  std::vector<float>& weights = s.ahead_weights;
  weights.resize(static_cast<size_t>(k));
  for (int64_t t = 0; t < T; ++t) {
    route_top_k({logits.row(t), static_cast<size_t>(f.n_experts)}, k, experts.data(), weights.data());
    for (int rank = 0; rank < k; ++rank) s.ahead_votes_E[experts[rank]] += 1 + k - rank;
  }
  experts.clear();
  for (int32_t e = 0; e < f.n_experts; ++e)
    if (s.ahead_votes_E[e] > 0) experts.push_back(e);
  const auto votes_for = [&](int32_t e) { return s.ahead_votes_E[e]; };
  std::sort(experts.begin(), experts.end(), [&](int32_t a, int32_t b) {
    return votes_for(a) != votes_for(b) ? votes_for(a) > votes_for(b) : a < b;
  });
  lc.experts.prefetch(block, experts);
}

}  // namespace

Result<void> ffn_layer(LayerContext& lc, const Batch& batch, const FfnWeights& w, int block,
                       const LookAhead* next, TensorView<const float> x, TensorView<float> y) {
  const FfnConfig& f = lc.config.ffn;
  if (f.n_experts == 0) {
    swiglu(lc, w.gate, w.up, w.down, x, y);
    return {};
  }

  KernelContext& kernels = lc.kernels;
  Scratch& s = lc.scratch;
  const int64_t T = x.rows;
  const int used = f.n_used;
  const TensorView<float> logits = s.router_logits.slice_rows(0, T);
  matmul(kernels, w.router, x, logits);
  route(lc, batch, block, logits);
  group_by_expert(lc, T);

  // All of a wave's reads are under way before anything is computed; the shared expert needs none of them.
  // Each expert's slots are its own, so the order in which experts arrive changes no bit.
  const bool shared = f.d_shared > 0;
  const auto wave = static_cast<size_t>(lc.experts.max_experts(block));
  for (size_t first = 0; first < s.experts_in_use.size(); first += wave) {
    const size_t n = std::min(wave, s.experts_in_use.size() - first);
    ExpertLease lease = TRY(lc.experts.request(block, std::span(s.experts_in_use).subspan(first, n)));
    if (next != nullptr && first + n == s.experts_in_use.size()) read_ahead(lc, *next, block + 1, T);
    if (shared && first == 0) run_shared_expert(lc, w, x);
    while (true) {
      const std::span<const ResidentExpert> ready = TRY(lease.take_ready());
      if (ready.empty()) break;
      run_experts(lc, ready, x, T * used);
    }
  }

  const TensorView<float> out = s.expert_out_SD.slice_rows(0, T * used);
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
  return {};
}

}  // namespace forebay
