/// The head of one row's routing, as traces keep it and policies see it. Both round in this one place, so
/// that a replay ranks experts exactly as the live cache did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forebay {

constexpr int kMaxRouteCandidates = 64;
constexpr int kLogitSteps = 1024;  // per unit of a logit
constexpr int kMaxRoutedExperts = 1 << 16;

/// Logits in steps of 1 / kLogitSteps.
struct RouteCandidates {
  int32_t top = 0;                 // the largest logit of all experts, within +-(2^23 - 1) steps
  uint16_t log_sum = 0;            // log(sum exp) over all experts, steps above `top`
  std::span<const uint16_t> ids;   // largest logit first; ties: lowest id
  std::span<const uint16_t> gaps;  // steps below `top`, at most 65535
};

/// exp(-gap / kLogitSteps).
float exp_of_gap(uint16_t gap);

/// Confined. Allocates when made, not per row.
class RouteRanker {
 public:
  /// n_experts in [1, kMaxRoutedExperts].
  explicit RouteRanker(int n_experts);

  /// The first min(n_experts, kMaxRouteCandidates) in the order of route_top_k: NaN last. The spans are valid
  /// until the next call.
  RouteCandidates rank(std::span<const float> logits_E);

 private:
  std::vector<uint64_t> order_;
  std::vector<uint16_t> ids_, gaps_;
};

}  // namespace forebay
