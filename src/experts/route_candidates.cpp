#include "experts/route_candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>

#include "core/ensure.h"

namespace forebay {
namespace {

constexpr int32_t kMaxSteps = (1 << 23) - 1;
constexpr int kGaps = 1 << 16;

using GapTable = std::array<float, kGaps>;

const GapTable& gap_table() {
  static const std::unique_ptr<const GapTable> table = [] {
    auto exps = std::make_unique<GapTable>();
    for (int gap = 0; gap < kGaps; ++gap)
      (*exps)[gap] = static_cast<float>(std::exp(-static_cast<double>(gap) / kLogitSteps));
    return exps;
  }();
  return *table;
}

int32_t steps_of(float logit) {
  if (std::isnan(logit)) return -kMaxSteps;
  const double steps = std::nearbyint(static_cast<double>(logit) * kLogitSteps);
  return static_cast<int32_t>(std::clamp<double>(steps, -kMaxSteps, kMaxSteps));
}

uint16_t gap_below(int32_t top, float logit) {
  return static_cast<uint16_t>(std::min(top - steps_of(logit), kGaps - 1));
}

/// Unsigned integers in the order of floats; both zeros are equal, NaN is least.
uint32_t ordered_bits(float value) {
  if (std::isnan(value)) return 0;
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x8000'0000u;
}

}  // namespace

float exp_of_gap(uint16_t gap) {
  return gap_table()[gap];
}

RouteRanker::RouteRanker(int n_experts)
    : order_(n_experts),
      ids_(std::min(n_experts, kMaxRouteCandidates)),
      gaps_(std::min(n_experts, kMaxRouteCandidates)) {
  ENSURE(n_experts >= 1 && n_experts <= kMaxRoutedExperts, "route ranker: number of experts");
}

RouteCandidates RouteRanker::rank(std::span<const float> logits) {
  ENSURE(logits.size() == order_.size(), "route ranker: one logit per expert");
  // The id's complement below the logit: larger is better, and of equal logits the lowest id is.
  for (uint32_t e = 0; e < logits.size(); ++e)
    order_[e] = static_cast<uint64_t>(ordered_bits(logits[e])) << 32 | (UINT32_MAX - e);
  const auto head = order_.begin() + static_cast<std::ptrdiff_t>(ids_.size());
  if (head != order_.end()) std::nth_element(order_.begin(), head, order_.end(), std::greater<>());
  std::sort(order_.begin(), head, std::greater<>());
  for (size_t i = 0; i < ids_.size(); ++i)
    ids_[i] = static_cast<uint16_t>(UINT32_MAX - static_cast<uint32_t>(order_[i]));

  RouteCandidates found{steps_of(logits[ids_[0]]), 0, ids_, gaps_};
  for (size_t i = 0; i < ids_.size(); ++i) gaps_[i] = gap_below(found.top, logits[ids_[i]]);
  const GapTable& table = gap_table();
  double sum = 0;
  for (const float logit : logits) sum += table[gap_below(found.top, logit)];
  found.log_sum = static_cast<uint16_t>(std::nearbyint(std::log(sum) * kLogitSteps));
  return found;
}

}  // namespace forebay
