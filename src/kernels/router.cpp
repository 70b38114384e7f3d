#include "kernels/router.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/ensure.h"

namespace forebay {
namespace {

/// The k largest, best first, by insertion into a short sorted list: k is 4 to 16, E up to a few hundred. NaN
/// never beats anything.
void find_top(std::span<const float> logits, int k, int32_t* ids) {
  int n = 0;
  for (int32_t e = 0; e < static_cast<int32_t>(logits.size()); ++e) {
    const float logit = logits[e];
    int at = n;
    while (at > 0 && (logit > logits[ids[at - 1]] || std::isnan(logits[ids[at - 1]]))) --at;
    if (at >= k) continue;
    if (n < k) ++n;
    for (int j = n - 1; j > at; --j) ids[j] = ids[j - 1];
    ids[at] = e;
  }
}

void softmax_of_chosen(std::span<const float> logits, int k, const int32_t* ids, float* weights) {
  double sum = 0;
  for (int j = 0; j < k; ++j) sum += std::exp(static_cast<double>(logits[ids[j]]) - logits[ids[0]]);
  for (int j = 0; j < k; ++j)
    weights[j] = static_cast<float>(std::exp(static_cast<double>(logits[ids[j]]) - logits[ids[0]]) / sum);
}

/// The bits of ranks below n.
uint64_t ranks_below(int n) {
  return n >= 64 ? ~0ull : (1ull << n) - 1;
}

}  // namespace

void route_top_k(std::span<const float> logits, int k, int32_t* ids, float* weights) {
  ENSURE(k >= 1 && k <= static_cast<int>(logits.size()), "route_top_k: more experts asked than there are");
  find_top(logits, k, ids);
  softmax_of_chosen(logits, k, ids, weights);
}

uint64_t choose_biased(std::span<const float> logits, uint64_t resident, int k, const RouteBias& bias) {
  const int n = std::min(static_cast<int>(logits.size()), std::max(k, bias.window));
  ENSURE(n <= kMaxRouteWindow, "choose_biased: window");
  ENSURE(bias.lambda >= 0, "choose_biased: lambda");
  if (n <= k) return ranks_below(n);
  uint64_t chosen = ranks_below(std::clamp(bias.protect, 0, k));
  // p (1 + lambda) orders as logit + log(1 + lambda), without underflow. Resident and other ranks are each in
  // order already: they are merged.
  const double bonus = std::log1p(static_cast<double>(bias.lambda));
  uint64_t hits = resident & ranks_below(n) & ~chosen;
  uint64_t others = ~resident & ranks_below(n) & ~chosen;
  for (int left = k - std::popcount(chosen); left > 0; --left) {
    bool take_hit = others == 0;
    if (hits != 0 && others != 0) {
      const int hit = std::countr_zero(hits), other = std::countr_zero(others);
      const double hit_score = logits[hit] + bonus, other_score = logits[other];
      // NaN compares false both ways: then, as with ties, the better rank.
      take_hit = hit_score > other_score || (!(hit_score < other_score) && hit < other);
    }
    uint64_t& from = take_hit ? hits : others;
    chosen |= from & -from;
    from &= from - 1;
  }
  return chosen;
}

void route_top_k_biased(std::span<const float> logits, int k, const RouteBias& bias,
                        std::span<const uint8_t> resident, int32_t* ids, float* weights) {
  ENSURE(k >= 1 && k <= static_cast<int>(logits.size()),
         "route_top_k_biased: more experts asked than there are");
  ENSURE(resident.size() == logits.size(), "route_top_k_biased: residency per expert");
  const int n = std::min(static_cast<int>(logits.size()), std::max(k, bias.window));
  ENSURE(n <= kMaxRouteWindow, "route_top_k_biased: window");
  std::array<int32_t, kMaxRouteWindow> ranked;
  std::array<float, kMaxRouteWindow> ranked_logits;
  find_top(logits, n, ranked.data());
  uint64_t resident_ranks = 0;
  for (int r = 0; r < n; ++r) {
    ranked_logits[r] = logits[ranked[r]];
    if (resident[ranked[r]] != 0) resident_ranks |= 1ull << r;
  }
  uint64_t chosen = choose_biased(std::span(ranked_logits).first(n), resident_ranks, k, bias);
  for (int j = 0; chosen != 0; chosen &= chosen - 1) ids[j++] = ranked[std::countr_zero(chosen)];
  softmax_of_chosen(logits, k, ids, weights);
}

}  // namespace forebay
