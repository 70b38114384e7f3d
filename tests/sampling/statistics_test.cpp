/// Sampled frequencies against probabilities computed by hand from the weights 8 : 4 : 2 : 1 : 1.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

constexpr uint64_t kDraws = 40'000;

struct Case {
  const char* name;
  SamplingOptions options;
  std::vector<double> weights;  // of ids 0..4 after the chain
};

std::vector<Case> cases() {
  std::vector<Case> table;
  const auto add = [&](const char* name, std::vector<double> weights) -> SamplingOptions& {
    table.push_back({name, {}, std::move(weights)});
    return table.back().options;
  };
  add("plain", {8, 4, 2, 1, 1});
  add("temperature 0.5", {64, 16, 4, 1, 1}).temperature = 0.5f;
  add("temperature 2", {std::sqrt(8), 2, std::sqrt(2), 1, 1}).temperature = 2;
  add("top-k 3", {8, 4, 2, 0, 0}).top_k = 3;
  add("top-k 4, a tie at the edge", {8, 4, 2, 1, 0}).top_k = 4;
  add("top-p 0.7", {8, 4, 0, 0, 0}).top_p = 0.7f;  // 8/16, 12/16
  add("min-p 0.2", {8, 4, 2, 0, 0}).min_p = 0.2f;  // of 8: 1.6
  // Entropy of 1/2 1/4 1/8 1/16 1/16 is 1.875 bits; surprises are 1 2 3 4 4 bits: order 4/16, 8/16, 2/16.
  add("typical 0.6", {8, 4, 0, 0, 0}).typical_p = 0.6f;
  add("typical 0.2", {0, 4, 0, 0, 0}).typical_p = 0.2f;
  {
    SamplingOptions& o = add("top-k 4, top-p 0.9, min-p 0.3, temperature 0.5", {64, 16, 0, 0, 0});
    o.top_k = 4;
    o.top_p = 0.9f;  // of 15: 8, 12, 14
    o.min_p = 0.3f;  // of 8: 2.4
    o.temperature = 0.5f;
  }
  {
    SamplingOptions& o = add("bias", {0, 4, 4, 1, 1});
    o.logit_bias = {{0, -INFINITY}, {2, static_cast<float>(std::log(2.0))}};
  }
  return table;
}

/// Upper bound of chi-square with `df` degrees of freedom that a true sampler exceeds once in 10,000
/// (Wilson and Hilferty's approximation, z = 3.72).
double limit(int df) {
  const double v = 2.0 / (9.0 * df);
  return df * std::pow(1 - v + 3.72 * std::sqrt(v), 3);
}

TEST(StatisticsTest, FrequenciesFollowTheProbabilities) {
  std::vector<float> logits;
  for (const double weight : {8, 4, 2, 1, 1}) logits.push_back(static_cast<float>(std::log(weight)));
  for (const Case& c : cases()) {
    for (const uint64_t seed : {1ull, 20260101ull}) {
      SamplingOptions options = c.options;
      options.seed = seed;
      SamplingScratch scratch;
      std::vector<double> counts(logits.size());
      for (uint64_t position = 0; position < kDraws; ++position) {
        const Result<int32_t> id = forebay::sample(logits, {}, options, position, scratch);
        ASSERT_TRUE(id) << c.name;
        counts[static_cast<size_t>(*id)] += 1;
      }
      double total = 0, statistic = 0;
      int df = -1;
      for (const double weight : c.weights) total += weight;
      for (size_t id = 0; id < counts.size(); ++id) {
        const double expected = kDraws * c.weights[id] / total;
        if (expected == 0) {
          EXPECT_EQ(counts[id], 0) << c.name << ", id " << id;
          continue;
        }
        statistic += std::pow(counts[id] - expected, 2) / expected;
        ++df;
      }
      EXPECT_LT(statistic, limit(std::max(df, 1))) << c.name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace forebay
