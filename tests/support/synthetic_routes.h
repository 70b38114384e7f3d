/// Routing that looks like a trained model's, without a model: some experts are popular (Zipf), and tastes
/// drift, so that what was used lately is likely to be used again. Deterministic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "experts/route_candidates.h"
#include "experts/route_observer.h"

namespace forebay::testing {

struct SyntheticShape {
  int n_blocks = 4;
  int n_experts = 32;
  int n_used = 4;
  float zipf = 0.6f;      // the r-th most popular expert's logit is -zipf * log(r) below the first's
  float locality = 0.9f;  // how much of an expert's drift stays from token to token
  float noise = 1.0f;     // of a logit, in all
  uint64_t seed = 1;
};

/// Confined.
class SyntheticRoutes {
 public:
  explicit SyntheticRoutes(const SyntheticShape& shape)
      : shape_(shape),
        state_(shape.seed),
        ranker_(shape.n_experts),
        drift_(static_cast<size_t>(shape.n_blocks) * shape.n_experts),
        popularity_(drift_.size()),
        logits_(shape.n_experts),
        chosen_(shape.n_used) {
    std::vector<int> order(shape.n_experts);
    for (int b = 0; b < shape.n_blocks; ++b) {
      std::iota(order.begin(), order.end(), 0);
      for (int i = shape.n_experts - 1; i > 0; --i) std::swap(order[i], order[next() % (i + 1)]);
      for (int r = 0; r < shape.n_experts; ++r)
        popularity_[static_cast<size_t>(b) * shape.n_experts + order[r]] =
            -shape.zipf * std::log(static_cast<float>(r + 1));
    }
    for (float& d : drift_) d = gaussian();
  }

  /// A window of rows, block after block, to whoever looks.
  void window(RoutePhase phase, int n_rows, RouteObserver& observer) {
    const int32_t first_token = token_;
    token_ += n_rows;
    for (int b = 0; b < shape_.n_blocks; ++b)
      for (int row = 0; row < n_rows; ++row) observer.on_route(row_of(b, first_token + row, phase));
  }

  /// The next row of a block; its spans are valid until the next call.
  RouteEvent row_of(int block, int32_t token, RoutePhase phase) {
    const size_t first = static_cast<size_t>(block) * shape_.n_experts;
    const float kept = shape_.locality, fresh = std::sqrt(1 - kept * kept);
    for (int e = 0; e < shape_.n_experts; ++e) {
      float& d = drift_[first + e];
      d = kept * d + fresh * gaussian();
      logits_[e] = popularity_[first + e] + shape_.noise * d;
    }
    const RouteCandidates row = ranker_.rank(logits_);
    std::copy_n(row.ids.begin(), chosen_.size(), chosen_.begin());
    return {block, token, phase, logits_, chosen_};
  }

 private:
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Four uniforms: near enough, and quick.
  float gaussian() {
    const uint64_t bits = next();
    const int sum =
        static_cast<int>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return static_cast<float>(sum - 2 * 65535) * (1.7320508f / 65536);
  }

  const SyntheticShape shape_;
  uint64_t state_;
  RouteRanker ranker_;
  std::vector<float> drift_, popularity_, logits_;
  std::vector<int32_t> chosen_;
  int32_t token_ = 0;
};

}  // namespace forebay::testing
