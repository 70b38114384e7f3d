#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "sampling/sampling.h"
#include "sampling/weight.h"

namespace forebay {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<int32_t>;

/// Logits whose softmax is proportional to `weights`.
Logits logits_of(const std::vector<double>& weights) {
  Logits logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight)));
  return logits;
}

void expect_near(const Distribution& distribution, const Ids& ids, const std::vector<double>& probabilities) {
  EXPECT_EQ(distribution.ids, ids);
  ASSERT_EQ(distribution.probabilities.size(), probabilities.size());
  for (size_t i = 0; i < probabilities.size(); ++i)
    EXPECT_NEAR(distribution.probabilities[i], probabilities[i], 1e-6) << "entry " << i;
}

const Logits kLogits = logits_of({0.1, 0.4, 0.2, 0.3});

TEST(DistributionTest, SoftmaxLargestFirst) {
  expect_near(make_distribution(kLogits, {}), {1, 3, 2, 0}, {0.4, 0.3, 0.2, 0.1});
}

TEST(DistributionTest, Temperature) {
  SamplingOptions options;
  options.temperature = 0.5f;  // squares the weights: 16 9 4 1 of 30
  expect_near(make_distribution(kLogits, options), {1, 3, 2, 0}, {16 / 30., 9 / 30., 4 / 30., 1 / 30.});
  options.temperature = 2;  // takes their roots
  const double total = std::sqrt(0.4) + std::sqrt(0.3) + std::sqrt(0.2) + std::sqrt(0.1);
  expect_near(
      make_distribution(kLogits, options), {1, 3, 2, 0},
      {std::sqrt(0.4) / total, std::sqrt(0.3) / total, std::sqrt(0.2) / total, std::sqrt(0.1) / total});
  options.temperature = 1e-30f;
  expect_near(make_distribution(kLogits, options), {1, 3, 2, 0}, {1, 0, 0, 0});
}

TEST(DistributionTest, GreedyKeepsOne) {
  SamplingOptions options;
  options.temperature = 0;
  expect_near(make_distribution(kLogits, options), {1}, {1});
  expect_near(make_distribution(Logits{1, 5, 5}, options), {1}, {1});
}

TEST(DistributionTest, TopK) {
  SamplingOptions options;
  options.top_k = 2;
  expect_near(make_distribution(kLogits, options), {1, 3}, {4 / 7., 3 / 7.});
  options.top_k = 1;
  expect_near(make_distribution(kLogits, options), {1}, {1});
  options.top_k = 100;
  expect_near(make_distribution(kLogits, options), {1, 3, 2, 0}, {0.4, 0.3, 0.2, 0.1});
}

TEST(DistributionTest, TopPKeepsTheCandidateThatCrosses) {
  SamplingOptions options;
  options.top_p = 0.35f;
  expect_near(make_distribution(kLogits, options), {1}, {1});
  options.top_p = 0.5f;
  expect_near(make_distribution(kLogits, options), {1, 3}, {4 / 7., 3 / 7.});
  options.top_p = 0.75f;
  expect_near(make_distribution(kLogits, options), {1, 3, 2}, {4 / 9., 3 / 9., 2 / 9.});
  options.top_p = 0;
  expect_near(make_distribution(kLogits, options), {1}, {1});
  // Exactly the mass wanted is enough.
  options.top_p = 0.5f;
  expect_near(make_distribution(Logits{0, 0}, options), {0}, {1});
}

TEST(DistributionTest, MinPIsRelativeToTheBest) {
  SamplingOptions options;
  options.min_p = 0.6f;  // of 0.4: 0.24
  expect_near(make_distribution(kLogits, options), {1, 3}, {4 / 7., 3 / 7.});
  options.min_p = 0.4f;  // 0.16
  expect_near(make_distribution(kLogits, options), {1, 3, 2}, {4 / 9., 3 / 9., 2 / 9.});
  options.min_p = 1;
  expect_near(make_distribution(Logits{2, 1, 2}, options), {0, 2}, {0.5, 0.5});
}

TEST(DistributionTest, TypicalPrefersSurpriseNearTheEntropy) {
  // Weights 0.5, 0.2, 0.2, 0.1: entropy 1.2206; -log p = 0.693, 1.609, 1.609, 2.303. The two of 0.2 are
  // 0.389 away, the best 0.527, the last 1.082.
  const Logits logits = logits_of({0.5, 0.2, 0.2, 0.1});
  SamplingOptions options;
  options.typical_p = 0.15f;
  expect_near(make_distribution(logits, options), {1}, {1});
  options.typical_p = 0.3f;
  expect_near(make_distribution(logits, options), {1, 2}, {0.5, 0.5});
  options.typical_p = 0.6f;
  expect_near(make_distribution(logits, options), {0, 1, 2}, {5 / 9., 2 / 9., 2 / 9.});
  options.typical_p = 0.95f;
  expect_near(make_distribution(logits, options), {0, 1, 2, 3}, {0.5, 0.2, 0.2, 0.1});
  // Greedy takes the best of what is left.
  options.typical_p = 0.3f;
  options.temperature = 0;
  expect_near(make_distribution(logits, options), {1}, {1});
}

TEST(DistributionTest, EachFilterSeesWhatTheOneBeforeLeft) {
  SamplingOptions options;
  options.top_k = 2;     // 4/7, 3/7
  options.top_p = 0.5f;  // of these: the first has 0.57
  expect_near(make_distribution(kLogits, options), {1}, {1});
  options = {};
  options.top_p = 0.75f;
  options.min_p = 0.6f;
  options.temperature = 0.5f;  // after the filters: 16 and 9
  expect_near(make_distribution(kLogits, options), {1, 3}, {16 / 25., 9 / 25.});
}

TEST(DistributionTest, TiesGoToTheLowestId) {
  const Logits logits = {1, 2, 2, 2, 1};
  SamplingOptions options;
  options.top_k = 2;
  EXPECT_EQ(make_distribution(logits, options).ids, (Ids{1, 2}));
  options.top_k = 4;
  EXPECT_EQ(make_distribution(logits, options).ids, (Ids{1, 2, 3, 0}));
  options = {};
  options.top_p = 0.3f;
  EXPECT_EQ(make_distribution(logits, options).ids, (Ids{1, 2}));
  EXPECT_EQ(make_distribution(logits, {}).ids, (Ids{1, 2, 3, 0, 4}));
  options = {};
  options.top_k = 3;
  EXPECT_EQ(make_distribution(Logits(1000, 0.5f), options).ids, (Ids{0, 1, 2}));
}

TEST(DistributionTest, NonFiniteLogitsNeverSurvive) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Logits logits = {nan, 1, -INFINITY, INFINITY, 1, -nan};
  SamplingOptions all, top_k, filters, greedy;
  top_k.top_k = 4;
  filters.typical_p = filters.top_p = 0.99f;
  filters.min_p = 0.01f;
  greedy.temperature = 0;
  expect_near(make_distribution(logits, all), {1, 4}, {0.5, 0.5});
  expect_near(make_distribution(logits, top_k), {1, 4}, {0.5, 0.5});
  expect_near(make_distribution(logits, filters), {1, 4}, {0.5, 0.5});
  expect_near(make_distribution(logits, greedy), {1}, {1});
  for (const SamplingOptions& options : {all, top_k, filters, greedy}) {
    EXPECT_TRUE(make_distribution(Logits{nan, -INFINITY, INFINITY}, options).ids.empty());
    EXPECT_TRUE(make_distribution(Logits{}, options).ids.empty());
  }
}

TEST(DistributionTest, ExtremeLogits) {
  const float huge = std::numeric_limits<float>::max();
  expect_near(make_distribution(Logits{-huge, huge}, {}), {1, 0}, {1, 0});
  expect_near(make_distribution(Logits{-huge, -huge}, {}), {0, 1}, {0.5, 0.5});
}

TEST(DrawTest, CumulativeMass) {
  const Distribution distribution{{7, 3, 5}, {0.5, 0.25, 0.25}};
  EXPECT_EQ(draw(distribution, 0), 7);
  EXPECT_EQ(draw(distribution, 0.4999), 7);
  EXPECT_EQ(draw(distribution, 0.5), 3);
  EXPECT_EQ(draw(distribution, 0.75), 5);
  EXPECT_EQ(draw(distribution, std::nextafter(1.0, 0.0)), 5);
  EXPECT_EQ(draw({}, 0.5), -1);
}

TEST(DrawTest, NeverLandsOnZeroMass) {
  EXPECT_EQ(draw({{7, 3}, {1 - 1e-15, 0}}, std::nextafter(1.0, 0.0)), 7);
}

TEST(ArgmaxTest, LowestIdOfTheFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(argmax(Logits{1, 3, 2, 3}), 1);
  EXPECT_EQ(argmax(Logits{nan, INFINITY, -5, -INFINITY}), 2);
  EXPECT_EQ(argmax(Logits{nan, INFINITY, -INFINITY}), -1);
  EXPECT_EQ(argmax(Logits{}), -1);
}

TEST(WeightTest, IsExpWithinTwoUlp) {
  EXPECT_EQ(weight(0), 1);
  EXPECT_EQ(weight(-0.0), 1);
  EXPECT_EQ(weight(-709), 0);
  EXPECT_GT(weight(-708), 0);
  EXPECT_EQ(weight(-INFINITY), 0);
  double worst = 0, at = 0;
  for (double x = 0; x > -708; x -= 0.00097) {
    const double expected = std::exp(x);
    const double error = std::abs(weight(x) - expected) / (std::nextafter(expected, 2.0) - expected);
    if (error > worst) worst = error, at = x;
  }
  EXPECT_LE(worst, 2) << "ulp at " << at;
}

TEST(Weights, SeveralAtOnceAreTheBitsOfOne) {
  std::vector<double> x = {0,      -0.0,      -1,  -707.9999, -708,       -708.0001,
                           -1e300, -INFINITY, NAN, -1e-300,   -0.34657359};
  uint64_t random = 5;
  while (x.size() < 1003) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    x.push_back(-static_cast<double>(random >> 11) * 0x1p-53 * (x.size() % 2 == 0 ? 720 : 8));
  }
  for (size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{257}, x.size()}) {
    std::vector<double> got(n), want(n);
    weights(x.data(), n, got.data());
    sampling_detail::weights_ref(x.data(), n, want.data());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), n * sizeof(double)), 0) << n;
    double sum = 0;
    for (const double w : want) sum += w;
    EXPECT_EQ(sum_of_weights(n, [&](size_t i) { return x[i]; }), sum);
  }
}

}  // namespace
}  // namespace forebay
