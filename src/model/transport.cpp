#include "model/transport.h"

#include <algorithm>
#include <vector>

#include "tensor/half.h"

namespace forebay {
namespace {

/// The chosen heads' states side by side; the others become zero when they are put back.
std::vector<float> gather(const GatedDeltaShape& shape, std::span<const int> heads,
                          std::span<const float> all) {
  const int64_t size = static_cast<int64_t>(shape.k_dim) * shape.v_dim;
  std::vector<float> out;
  for (int head : heads) out.insert(out.end(), all.begin() + head * size, all.begin() + (head + 1) * size);
  return out;
}

void scatter(const GatedDeltaShape& shape, std::span<const int> heads, const std::vector<float>& chosen,
             std::span<float> all) {
  const int64_t size = static_cast<int64_t>(shape.k_dim) * shape.v_dim;
  std::fill(all.begin(), all.end(), 0.0f);
  for (size_t i = 0; i < heads.size(); ++i)
    std::copy_n(chosen.begin() + static_cast<int64_t>(i) * size, size, all.begin() + heads[i] * size);
}

}  // namespace

void transport_difference_ref(const GatedDeltaShape& shape, const RecurrenceLog& log, int block,
                              int64_t first, int64_t end, std::span<const int> heads,
                              std::span<float> difference) {
  const int K = shape.k_dim, V = shape.v_dim;
  std::vector<float> chosen = gather(shape, heads, difference);
  for (size_t i = 0; i < heads.size(); ++i) {
    const int h = heads[i];
    std::vector<double> d(chosen.begin() + static_cast<int64_t>(i) * K * V,
                          chosen.begin() + static_cast<int64_t>(i + 1) * K * V);
    for (int64_t cell = first; cell < end; ++cell) {
      const double g = log.decays(block, cell)[h], b = log.betas(block, cell)[h];
      const auto k = log.keys_f16(block, cell).subspan(static_cast<int64_t>(shape.key_head(h)) * K, K);
      for (int v = 0; v < V; ++v) {
        double recalled = 0;
        for (int j = 0; j < K; ++j) recalled += f32_from_f16(k[j]) * d[j * V + v];
        for (int j = 0; j < K; ++j) d[j * V + v] = g * (d[j * V + v] - b * f32_from_f16(k[j]) * recalled);
      }
    }
    std::copy(d.begin(), d.end(), chosen.begin() + static_cast<int64_t>(i) * K * V);
  }
  scatter(shape, heads, chosen, difference);
}

/// The layer's own kernel over the chosen heads, each with its key head's keys, with values of zero.
void transport_difference(KernelContext& ctx, const GatedDeltaShape& shape, const RecurrenceLog& log,
                          int block, int64_t first, int64_t end, std::span<const int> heads,
                          std::span<float> difference) {
  std::vector<float> chosen = gather(shape, heads, difference);
  const auto n = static_cast<int64_t>(heads.size());
  constexpr int64_t kChunk = 64;
  const GatedDeltaShape narrow{static_cast<int>(n), static_cast<int>(n), shape.k_dim, shape.v_dim,
                               HeadPairing::kTiled};
  std::vector<float> k(kChunk * n * shape.k_dim), zero(kChunk * n * std::max(shape.k_dim, shape.v_dim));
  std::vector<float> unread(kChunk * n * shape.v_dim), decay(kChunk * n), beta(kChunk * n);
  for (int64_t at = first; at < end && n > 0; at += kChunk) {
    const int64_t T = std::min(kChunk, end - at);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t i = 0; i < n; ++i) {
        decay[t * n + i] = log.decays(block, at + t)[heads[i]];
        beta[t * n + i] = log.betas(block, at + t)[heads[i]];
        const auto key =
            log.keys_f16(block, at + t)
                .subspan(static_cast<int64_t>(shape.key_head(heads[i])) * shape.k_dim, shape.k_dim);
        std::transform(key.begin(), key.end(), k.begin() + (t * n + i) * shape.k_dim, f32_from_f16);
      }
    gated_delta_rule(ctx, narrow, {zero.data(), T, n * shape.k_dim}, {k.data(), T, n * shape.k_dim},
                     {zero.data(), T, n * shape.v_dim}, {decay.data(), T, n}, {beta.data(), T, n},
                     chosen.data(), {unread.data(), T, n * shape.v_dim});
  }
  scatter(shape, heads, chosen, difference);
}

}  // namespace forebay
