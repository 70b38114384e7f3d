#include "train/grpo/importance.h"

#include <cmath>

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

/// n tokens in one sequence, of which `first` have ratio a and the rest b.
ImportanceWeights two_values(int64_t n, int64_t first, double a, double b, const ImportanceOptions& options) {
  torch::Tensor old = torch::full({1, n}, std::log(b));
  old.slice(1, 0, first) = std::log(a);
  return importance_weights(old, torch::zeros({1, n}), torch::ones({1, n}).to(torch::kBool), options);
}

TEST(Importance, TwoValuesByHand) {
  // rho = 4 at a quarter, 0.4 at the rest: mean 1.3; w = 2 and 0.4: mean 0.8.
  const ImportanceWeights w = two_values(8, 2, 4, 0.4, {});
  EXPECT_NEAR(w.report.mean_ratio, 1.3, 1e-6);
  EXPECT_NEAR(w.report.mean_weight, 0.8, 1e-6);
  EXPECT_NEAR(w.report.ess, 0.8 * 0.8 / (0.25 * 4 + 0.75 * 0.16), 1e-6);
  EXPECT_NEAR(w.report.high, 0.25, 1e-12) << "of the ratio itself, not of the cut weight";
  EXPECT_NEAR(w.report.low, 0.75, 1e-12);
  EXPECT_NEAR(w.report.k3, 0.25 * (3 - std::log(4)) + 0.75 * (-0.6 - std::log(0.4)), 1e-6);
  EXPECT_NEAR(w.report.chi2_token, 0.25 * 16 + 0.75 * 0.16 - 1, 1e-5);
  EXPECT_NEAR(w.report.chi2_sequence, std::exp(2 * (2 * std::log(4) + 6 * std::log(0.4))) - 1, 1e-6);
  EXPECT_NEAR(w.weights[0][0].item<double>(), 2, 1e-6);
  EXPECT_NEAR(w.weights[0][7].item<double>(), 0.4, 1e-6);
  EXPECT_FALSE(w.report.alarm);
}

TEST(Importance, NormalisedAfterTruncation) {
  const ImportanceWeights w = two_values(8, 2, 4, 0.5, {.weigh = true, .normalise = true});
  EXPECT_TRUE(w.report.normalised);
  EXPECT_NEAR(w.weights.mean().item<double>(), 1, 1e-6);
  EXPECT_NEAR(w.weights[0][0].item<double>(), 2 / 0.875, 1e-6);
}

TEST(Importance, RefusesToNormaliseWhatVanished) {
  const ImportanceWeights w = two_values(10, 0, 1, 0.0005, {.weigh = true, .normalise = true});
  EXPECT_TRUE(w.report.refused);
  EXPECT_FALSE(w.report.normalised);
  EXPECT_TRUE(w.report.alarm);
  EXPECT_NEAR(w.weights[0][0].item<double>(), 0.0005, 1e-8) << "not multiplied by 2000";
}

TEST(Importance, AlarmsOnAFewTokensThatCarryEverything) {
  const ImportanceWeights w = two_values(1000, 1, 2, 1e-6, {.truncation = 100});
  EXPECT_NEAR(w.report.ess, 0.001, 1e-4) << "a fraction";
  EXPECT_TRUE(w.report.alarm);
  EXPECT_TRUE(two_values(10, 10, 2.5, 1, {.truncation = 5}).report.alarm);
  EXPECT_FALSE(two_values(10, 10, 1.5, 1, {}).report.alarm);
}

TEST(Importance, TheMeanRatioUnderTheSamplerIsOne) {
  // Tokens drawn from the sampler's distribution: E[pi_old / pi_roll] = 1 whatever the two are.
  torch::manual_seed(3);
  const torch::Tensor roll = torch::log_softmax(torch::randn({10}), 0);
  const torch::Tensor old = torch::log_softmax(torch::randn({10}), 0);
  const torch::Tensor drawn = torch::multinomial(roll.exp(), 200000, true).unsqueeze(0);
  const auto pick = [&](const torch::Tensor& p) { return p.index_select(0, drawn[0]).unsqueeze(0); };
  const ImportanceWeights w = importance_weights(
      pick(old), pick(roll), torch::ones_like(drawn).to(torch::kBool), {.truncation = 1e9});
  EXPECT_NEAR(w.report.mean_ratio, 1, 0.03);
}

TEST(Importance, PaddingDoesNotCountAndExtremesAreFinite) {
  const torch::Tensor old = torch::tensor({{-1.f, -300.f, 1e30f}, {0.f, 0.f, 0.f}});
  const torch::Tensor roll = torch::tensor({{-1.f, 0.f, -1e30f}, {0.f, 0.f, 0.f}});
  const torch::Tensor mask = torch::tensor({{1, 1, 0}, {0, 0, 0}}).to(torch::kBool);
  const ImportanceWeights w = importance_weights(old, roll, mask, {});
  EXPECT_TRUE(torch::isfinite(w.weights).all().item<bool>());
  EXPECT_EQ(w.weights[0][2].item<double>(), 0);
  EXPECT_NEAR(w.report.mean_ratio, 0.5, 1e-6);
  EXPECT_NEAR(w.report.mean_weight, 0.5, 1e-6);
  const ImportanceWeights none = importance_weights(old, roll, torch::zeros_like(mask), {});
  EXPECT_TRUE(std::isnan(none.report.mean_ratio)) << "no token, no mean";
  EXPECT_TRUE(std::isnan(none.report.ess));
  EXPECT_FALSE(none.report.alarm);
}

}  // namespace
}  // namespace forebay::train
