// Cache-aware routing: small cases by hand, and against choosing by score directly.
#include "kernels/router.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace forebay {
namespace {

struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Choice biased(const std::vector<float>& logits, int k, const RouteBias& bias,
              const std::vector<uint8_t>& resident) {
  Choice choice{std::vector<int32_t>(k), std::vector<float>(k)};
  route_top_k_biased(logits, k, bias, resident, choice.ids.data(), choice.weights.data());
  return choice;
}

using Ids = std::vector<int32_t>;

// p falls by a factor of e from each expert to the next, so that lambda e - 1 is one rank.
const std::vector<float> kFalling{0, -1, -2, -3, -4, -5, -6, -7};

TEST(BiasedRouter, PrefersResidentExpertsThatAreCloseEnough) {
  const std::vector<uint8_t> resident{0, 0, 0, 0, 0, 1, 0, 0};
  const auto ids = [&](float lambda, int protect, int window) {
    return biased(kFalling, 3, {lambda, protect, window}, resident).ids;
  };
  EXPECT_EQ(ids(std::exp(2.9f) - 1, 0, 8), (Ids{0, 1, 2})) << "expert 5 is three ranks away";
  EXPECT_EQ(ids(std::exp(3.1f) - 1, 0, 8), (Ids{0, 1, 5}));
  EXPECT_EQ(ids(std::exp(4.1f) - 1, 0, 8), (Ids{0, 1, 5})) << "one resident expert, one change";
  EXPECT_EQ(ids(1e6f, 3, 8), (Ids{0, 1, 2})) << "all three are protected";
  EXPECT_EQ(ids(1e6f, 0, 5), (Ids{0, 1, 2})) << "rank 6 is outside the window";
  EXPECT_EQ(ids(1e6f, 0, 6), (Ids{0, 1, 5}));
}

TEST(BiasedRouter, ProtectsTheFirstRanksOnly) {
  const std::vector<uint8_t> resident{0, 0, 0, 1, 1, 1, 0, 0};
  EXPECT_EQ(biased(kFalling, 3, {1e6f, 0, 8}, resident).ids, (Ids{3, 4, 5}));
  EXPECT_EQ(biased(kFalling, 3, {1e6f, 1, 8}, resident).ids, (Ids{0, 3, 4}));
  EXPECT_EQ(biased(kFalling, 3, {1e6f, 2, 8}, resident).ids, (Ids{0, 1, 3}));
}

TEST(BiasedRouter, WeighsByTheTrueProbabilities) {
  const Choice choice = biased(kFalling, 2, {1e6f, 1, 8}, {0, 0, 0, 1, 0, 0, 0, 0});
  ASSERT_EQ(choice.ids, (Ids{0, 3}));
  const double sum = 1 + std::exp(-3.0);
  EXPECT_NEAR(choice.weights[0], 1 / sum, 1e-7);
  EXPECT_NEAR(choice.weights[1], std::exp(-3.0) / sum, 1e-7);
}

TEST(BiasedRouter, WithoutBiasOrResidentsTheBitsAreRouteTopKs) {
  const uint64_t seed = 21;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> noise;
  for (int round = 0; round < 500; ++round) {
    const int n = 1 + static_cast<int>(random() % 80);
    const int k = 1 + static_cast<int>(random() % std::min(n, 12));
    std::vector<float> logits(n);
    for (float& l : logits) l = round % 2 == 0 ? noise(random) : std::round(2 * noise(random));
    if (round % 10 == 0) logits[random() % n] = std::numeric_limits<float>::quiet_NaN();
    if (round % 10 == 1) logits[random() % n] = -std::numeric_limits<float>::infinity();
    std::vector<uint8_t> some(n);
    for (uint8_t& r : some) r = random() % 2;
    Choice exact{Ids(k), std::vector<float>(k)};
    route_top_k(logits, k, exact.ids.data(), exact.weights.data());
    for (const Choice& other :
         {biased(logits, k, {0, 3, 16}, some), biased(logits, k, {5, 0, 16}, std::vector<uint8_t>(n, 0)),
          biased(logits, k, {5, 0, 16}, std::vector<uint8_t>(n, 1))}) {
      EXPECT_EQ(other.ids, exact.ids) << "round " << round << ", seed " << seed;
      EXPECT_EQ(std::memcmp(other.weights.data(), exact.weights.data(), k * sizeof(float)), 0)
          << "round " << round << ", seed " << seed;
    }
  }
}

// The definition: protected ranks, then by p (1 + lambda r) among the window.
TEST(BiasedRouter, AgreesWithSortingByScore) {
  const uint64_t seed = 22;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> noise;
  for (int round = 0; round < 500; ++round) {
    const int n = 20 + static_cast<int>(random() % 80), k = 8;
    const RouteBias bias{0.1f * static_cast<float>(random() % 30), static_cast<int>(random() % 5),
                         4 + static_cast<int>(random() % 16)};
    std::vector<float> logits(n);
    for (float& l : logits) l = noise(random);
    std::vector<uint8_t> resident(n);
    for (uint8_t& r : resident) r = random() % 3 == 0;

    Ids order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    Ids window(order.begin() + bias.protect, order.begin() + std::max(k, bias.window));
    const auto score = [&](int e) {
      return std::exp(double{logits[e]}) * (1 + (resident[e] ? bias.lambda : 0));
    };
    std::stable_sort(window.begin(), window.end(), [&](int a, int b) { return score(a) > score(b); });
    Ids expected(order.begin(), order.begin() + bias.protect);
    expected.insert(expected.end(), window.begin(), window.begin() + k - bias.protect);
    std::sort(expected.begin(), expected.end());

    const Choice choice = biased(logits, k, bias, resident);
    EXPECT_TRUE(std::is_sorted(choice.weights.rbegin(), choice.weights.rend()));
    Ids chosen = choice.ids;
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(chosen, expected) << "round " << round << ", seed " << seed;
  }
}

TEST(ChooseBiased, TakesAllWhenThereAreNoMoreThanAsked) {
  EXPECT_EQ(choose_biased(std::vector<float>{3, 2}, 0b10, 4, {1, 0, 16}), 0b11u);
  EXPECT_EQ(choose_biased({}, 0, 4, {1, 0, 16}), 0u);
  EXPECT_EQ(choose_biased(std::vector<float>(64, 1.0f), 1ull << 63, 63, {1, 3, 64}), ~(1ull << 62));
}

}  // namespace
}  // namespace forebay
