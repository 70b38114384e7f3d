// The objective against sums done by hand.
#include "train/grpo/objective.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "train/grpo/advantages.h"

namespace forebay::train {
namespace {

torch::Tensor row(std::vector<float> values) {
  return torch::tensor(values).unsqueeze(0);
}
torch::Tensor mask(std::vector<int> values) {
  return torch::tensor(values).to(torch::kBool).unsqueeze(0);
}

AnswerTokens tokens(const torch::Tensor& log_probs, const torch::Tensor& old, double advantage) {
  return {.log_probs = log_probs,
          .old = old,
          .reference = old,
          .rollout = old,
          .advantages = torch::full({log_probs.size(0), 1}, advantage),
          .weights = {},
          .mask = torch::ones_like(old).to(torch::kBool)};
}

TEST(Objective, FiveTokensByHand) {
  // Ratios e^0.1, e^-0.5, 1, and two tokens that were rejected: they are in no denominator.
  AnswerTokens t = tokens(row({-0.9f, -1.5f, -2, -7, -1}).requires_grad_(), row({-1, -1, -2, -1, -9}), 0);
  t.advantages = row({1, -1, 2, 50, 50});
  t.reference = row({-1, -1, -2.3f, 0, 0});
  t.mask = mask({1, 1, 1, 0, 0});
  const double beta = 0.01;
  const Objective o = grpo_objective(t, 3, {.beta = beta});
  const auto k = [](double d) { return std::exp(d) - d - 1; };
  // A > 0: min(1.105, 1.105); A < 0: -max(r, 0.8) = -0.8; ratio 1.
  const double policy = -(std::exp(0.1) * 1 - 0.8 + 2.0);
  const double kl = k(-0.1) + k(0.5) + k(-0.3);
  EXPECT_NEAR(o.loss.item<double>(), (policy + beta * kl) / 3, 1e-6);
  EXPECT_NEAR(o.sums[kSumPolicy].item<double>(), policy, 1e-6);
  EXPECT_NEAR(o.sums[kSumReferenceKl].item<double>(), kl, 1e-6);
  EXPECT_EQ(o.sums[kSumTokens].item<double>(), 3);
  EXPECT_EQ(o.sums[kSumClipped].item<double>(), 1);
  EXPECT_NEAR(o.ratio_max_dev.item<double>(), 1 - std::exp(-0.5), 1e-6);
  o.loss.backward();
  const torch::Tensor g = t.log_probs.grad()[0];
  EXPECT_NEAR(g[0].item<double>(), (-std::exp(0.1) + beta * (1 - std::exp(-0.1))) / 3, 1e-6);
  EXPECT_NEAR(g[1].item<double>(), beta * (1 - std::exp(0.5)) / 3, 1e-7) << "the clipped side moves nothing";
  EXPECT_NEAR(g[2].item<double>(), (-2 + beta * (1 - std::exp(-0.3))) / 3, 1e-6);
  EXPECT_EQ(g[3].item<double>(), 0);
  EXPECT_EQ(g[4].item<double>(), 0);
}

TEST(Objective, WeightsReachTheLoss) {
  AnswerTokens t = tokens(row({-1, -2}).requires_grad_(), row({-1, -2}), 1);
  t.weights = row({0.5f, 2});
  const Objective o = grpo_objective(t, 2, {.beta = 0});
  EXPECT_NEAR(o.loss.item<double>(), -(0.5 + 2) / 2, 1e-6);
  o.loss.backward();
  EXPECT_NEAR(t.log_probs.grad()[0][0].item<double>(), -0.25, 1e-7);
  EXPECT_NEAR(t.log_probs.grad()[0][1].item<double>(), -1, 1e-7);
}

TEST(Objective, EqualRewardsGiveExactlyNoGradient) {
  const std::vector<std::optional<double>> rewards(8, 0.1);
  const Advantages a = group_advantages(rewards, 8, {.divide_by_std = true, .drop_equal = false});
  for (const double value : a.values) EXPECT_EQ(value, 0.0);
  torch::manual_seed(1);
  AnswerTokens t = tokens(torch::randn({8, 5}).requires_grad_(), torch::randn({8, 5}), 0);
  t.old = t.log_probs.detach();
  t.reference = t.old;
  grpo_objective(t, 40, {}).loss.backward();
  EXPECT_TRUE((t.log_probs.grad() == 0).all().item<bool>());
}

TEST(Objective, OrderOfAnswersChangesNothing) {
  const std::vector<std::optional<double>> rewards = {1, 0, std::nullopt, 0.3, 1, 0};
  const std::vector<size_t> order = {4, 2, 0, 5, 1, 3};
  std::vector<std::optional<double>> permuted;
  for (const size_t i : order) permuted.push_back(rewards[i]);
  const Advantages a = group_advantages(rewards, 6, {}), b = group_advantages(permuted, 6, {});
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(b.values[i], a.values[order[i]]);
    EXPECT_EQ(b.kept[i], a.kept[order[i]]);
  }
}

TEST(Objective, OnPolicyTheRatioIsExactlyOne) {
  torch::manual_seed(2);
  const torch::Tensor logits = torch::randn({3, 7, 20}) * 5;
  const torch::Tensor targets = torch::randint(20, {3, 7});
  const torch::Tensor old = token_log_probs(logits, targets);
  const Objective o = grpo_objective(tokens(token_log_probs(logits, targets), old, 1), 21, {});
  EXPECT_EQ(o.ratio_max_dev.item<double>(), 0.0);
}

TEST(Objective, FiniteWhateverTheLogRatios) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float d : {200.f, -200.f, 1e30f, -1e30f})
    for (const double advantage : {1.0, -1.0}) {
      // The same at a real token and at padding; padding may even be infinite.
      AnswerTokens t = tokens(row({-1 + d, -1 + d, -1}).requires_grad_(), row({-1, -1, -1}), advantage);
      t.reference = row({-1 - d, -1 - d, -1});
      t.rollout = row({-1, inf, -1});
      t.mask = mask({1, 0, 1});
      for (const Cvc cvc : {Cvc::kNone, Cvc::kCrossEntropy, Cvc::kSquare}) {
        t.log_probs = t.log_probs.detach().clone().requires_grad_();
        const Objective o = grpo_objective(t, 2, {.beta = 0.1, .cvc = cvc, .cvc_lambda = 1e-3});
        if (std::abs(d) < 1e10) {
          EXPECT_TRUE(std::isfinite(o.loss.item<double>())) << d;
        }
        EXPECT_EQ(o.sums[kSumOverflow].item<double>(), 1) << d;
        o.loss.backward();
        EXPECT_TRUE(torch::isfinite(t.log_probs.grad()).all().item<bool>()) << d;
        EXPECT_EQ(t.log_probs.grad()[0][1].item<double>(), 0) << d;
      }
    }
}

TEST(Objective, K3IsCutNotInfinite) {
  torch::Tensor d = torch::tensor({100.f, -100.f, 0.f, 1e-4f, 3.f}).requires_grad_();
  const torch::Tensor value = k3(d);
  EXPECT_TRUE(torch::isfinite(value).all().item<bool>());
  EXPECT_NEAR(value[1].item<double>(), 19, 1e-5);
  EXPECT_EQ(value[2].item<double>(), 0);
  EXPECT_NEAR(value[3].item<double>(), 0.5e-8, 1e-11) << "no cancellation near 0";
  EXPECT_NEAR(value[4].item<double>(), std::exp(3.0) - 4, 1e-4);
  value.sum().backward();
  EXPECT_EQ(d.grad()[0].item<double>(), 0) << "no gradient through what was cut";
  EXPECT_EQ(d.grad()[1].item<double>(), 0);
  EXPECT_NEAR(d.grad()[4].item<double>(), std::exp(3.0) - 1, 1e-4);
}

TEST(Objective, DiscrepancyIsPenalisedWhereWeightsVanish) {
  // 50 nats apart: a ratio of e^-50 is nothing, its logarithm is not.
  AnswerTokens t = tokens(row({-51}).requires_grad_(), row({-51}), 0);
  t.rollout = row({-1});
  const Objective o = grpo_objective(t, 1, {.beta = 0, .cvc = Cvc::kSquare, .cvc_lambda = 1e-3});
  EXPECT_NEAR(o.loss.item<double>(), 1e-3 * 1250, 1e-5);
  o.loss.backward();
  EXPECT_NEAR(t.log_probs.grad()[0][0].item<double>(), -1e-3 * 50, 1e-6);
}

TEST(Objective, CrossEntropyPullsTheViewToTheSampler) {
  AnswerTokens t = tokens(row({-2, -3}).requires_grad_(), row({-2, -3}), 0);
  const Objective o = grpo_objective(t, 2, {.beta = 0, .cvc = Cvc::kCrossEntropy, .cvc_lambda = 0.1});
  EXPECT_NEAR(o.loss.item<double>(), 0.1 * 2.5, 1e-6);
  o.loss.backward();
  EXPECT_NEAR(t.log_probs.grad()[0][0].item<double>(), -0.05, 1e-7);
}

TEST(Objective, ShapedAdvantagesLeaveSmallDifferencesAlone) {
  const torch::Tensor a =
      shaped_advantages(row({1}), row({-1, -1, -1, -1}), row({-1.5f, -0.5f, -3, 49}), 0.1, 0.5);
  EXPECT_EQ(a[0][0].item<double>(), 1);
  EXPECT_EQ(a[0][1].item<double>(), 1);
  EXPECT_NEAR(a[0][2].item<double>(), 1 - 0.1 * 1.5, 1e-6);
  EXPECT_NEAR(a[0][3].item<double>(), 1 - 0.1 * 49.5, 1e-5);
}

TEST(TokenLogProbs, OfACertainTokenAreNotNan) {
  torch::Tensor logits = torch::zeros({1, 2, 5});
  logits[0][0][3] = 1e4f;
  logits[0][1] = -1e4f;
  const torch::Tensor p = token_log_probs(logits, torch::tensor({{int64_t{3}, int64_t{0}}}));
  EXPECT_EQ(p[0][0].item<double>(), 0);
  EXPECT_NEAR(p[0][1].item<double>(), -std::log(5), 1e-6);
  const torch::Tensor other = token_log_probs(logits, torch::tensor({{int64_t{0}, int64_t{0}}}));
  EXPECT_EQ(other[0][0].item<double>(), -1e4);
}

TEST(Advantages, ByHand) {
  const std::vector<std::optional<double>> rewards = {1, 0, 0, 0, 1, 1, 1, 1};
  const Advantages a = group_advantages(rewards, 4, {});
  EXPECT_NEAR(a.values[0], 0.75 / (0.5 + 1e-4), 1e-12);
  EXPECT_NEAR(a.values[1], -0.25 / (0.5 + 1e-4), 1e-12);
  EXPECT_EQ(a.n_equal_groups, 1);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(a.kept[i]);
  for (size_t i = 4; i < 8; ++i) EXPECT_FALSE(a.kept[i]);
  const Advantages plain = group_advantages(rewards, 4, {.divide_by_std = false, .drop_equal = false});
  EXPECT_EQ(plain.values[0], 0.75);
  EXPECT_EQ(plain.values[1], -0.25);
  EXPECT_TRUE(plain.kept[7]);
}

TEST(Advantages, AFailedRolloutIsAsIfItHadNotBeenDrawn) {
  const std::vector<std::optional<double>> rewards = {1, std::nullopt, 0, 0}, without = {1, 0, 0};
  const Advantages a = group_advantages(rewards, 4, {}), b = group_advantages(without, 3, {});
  EXPECT_EQ(a.values[0], b.values[0]);
  EXPECT_EQ(a.values[3], b.values[2]);
  EXPECT_FALSE(a.kept[1]);
  EXPECT_EQ(a.n_failed, 1);
  // Alone, or none left.
  const Advantages one = group_advantages(std::vector<std::optional<double>>{std::nullopt, 1}, 2, {});
  EXPECT_EQ(one.values[1], 0);
  const Advantages none =
      group_advantages(std::vector<std::optional<double>>{std::nullopt, std::nullopt}, 2, {});
  EXPECT_FALSE(none.kept[0]);
  EXPECT_EQ(none.n_equal_groups, 0);
}

}  // namespace
}  // namespace forebay::train
