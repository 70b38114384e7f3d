#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

std::vector<float> random_logits(uint32_t seed, size_t n, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

double softmax_in_long_double(const std::vector<float>& logits, size_t id) {
  long double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<long double>(logit) - logits[id]);
  return static_cast<double>(-std::log(total));
}

TEST(LogProbTest, MatchesTheSoftmax) {
  for (const uint32_t seed : {1u, 2u, 3u})
    for (const float spread : {0.01f, 1.0f, 12.0f}) {
      const std::vector<float> logits = random_logits(seed, 1000, spread);
      for (const size_t id : {0, 17, 999})
        EXPECT_NEAR(log_prob(logits, static_cast<int32_t>(id)), softmax_in_long_double(logits, id), 1e-12)
            << "seed " << seed << " spread " << spread << " id " << id;
    }
}

TEST(LogProbTest, HandComputed) {
  EXPECT_NEAR(log_prob(std::vector<float>{0, 0, 0, 0}, 2), -std::log(4.0), 1e-15);
  EXPECT_EQ(log_prob(std::vector<float>{3}, 0), 0);
}

TEST(LogProbTest, NonFiniteHasNoMass) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits = {nan, 0, -INFINITY, 0, INFINITY};
  EXPECT_NEAR(log_prob(logits, 1), -std::log(2.0), 1e-15);
  for (const int32_t id : {0, 2, 4, -1, 5}) EXPECT_EQ(log_prob(logits, id), -INFINITY) << id;
  EXPECT_EQ(log_prob(std::vector<float>{nan}, 0), -INFINITY);
}

TEST(TopLogProbsTest, LargestFirstAndEqualToLogProb) {
  const std::vector<float> logits = random_logits(5, 5000, 4);
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  const auto top = top_log_probs(logits, 20);
  ASSERT_EQ(top.size(), 20u);
  for (size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].id, order[i]);
    EXPECT_EQ(top[i].log_prob, static_cast<float>(log_prob(logits, order[i])));
    EXPECT_NEAR(top[i].log_prob, softmax_in_long_double(logits, static_cast<size_t>(order[i])), 1e-6);
  }
}

TEST(TopLogProbsTest, Edges) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(top_log_probs(std::vector<float>{1, 2}, 0).empty());
  EXPECT_TRUE(top_log_probs(std::vector<float>{}, 3).empty());
  EXPECT_TRUE(top_log_probs(std::vector<float>{nan, INFINITY}, 3).empty());
  const auto top = top_log_probs(std::vector<float>{nan, 1, 1, -INFINITY}, 9);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 2);
}

}  // namespace
}  // namespace forebay
