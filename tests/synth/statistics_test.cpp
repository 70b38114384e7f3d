#include "synth/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "small_models.h"

namespace forebay::synth {
namespace {

/// Share of the uses that go to the most used quarter of the experts, for inputs that are half constant.
double share_of_top_quarter(double skew) {
  constexpr size_t kWidth = 256, kExperts = 64, kUsed = 4, kTokens = 2000;
  Geometry g = must(
      changed(must(find_geometry("qwen3-30b-a3b")), {.d_model = kWidth, .n_experts = kExperts, .n_used = 4}));
  // At the first block of a model whose blocks write nothing, the input is the embedding.
  const Statistics statistics(g.config, {.skew = skew, .locality = 0});
  std::vector<std::vector<float>> rows(kExperts, std::vector<float>(kWidth));
  for (size_t e = 0; e < kExperts; ++e) statistics.router_row(0, Key{11}, e, rows[e]);

  std::vector<int> uses(kExperts, 0);
  std::vector<float> x(kWidth);
  std::vector<double> logits(kExperts);
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t i = 0; i < kWidth; ++i)
      x[i] = static_cast<float>(std::sqrt(0.5) * (1 + Key{13}.numbered(t).normal(i)));
    for (size_t e = 0; e < kExperts; ++e)
      logits[e] = std::inner_product(x.begin(), x.end(), rows[e].begin(), 0.0);
    std::vector<size_t> order(kExperts);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::partial_sort(order, order.begin() + kUsed, std::greater<>(),
                              [&](size_t e) { return logits[e]; });
    for (size_t rank = 0; rank < kUsed; ++rank) ++uses[order[rank]];
  }
  std::ranges::sort(uses, std::greater<>());
  return std::accumulate(uses.begin(), uses.begin() + kExperts / 4, 0.0) / (kTokens * kUsed);
}

TEST(Statistics, SkewMakesSomeExpertsPopular) {
  const double even = share_of_top_quarter(0), some = share_of_top_quarter(0.5),
               much = share_of_top_quarter(2);
  EXPECT_LT(even, 0.35);
  EXPECT_GT(some, even + 0.1);
  EXPECT_GT(much, 0.8);
}

TEST(Statistics, LocalityMakesMixersWriteMore) {
  const Geometry g = must(find_geometry("qwen3.8-flash-next"));
  const Statistics low(g.config, {.skew = 1, .locality = 0.2}), high(g.config, {.skew = 1, .locality = 0.8});
  EXPECT_GT(high.mixer_output(0, 6144, 0.5).deviation, 2 * low.mixer_output(0, 6144, 0.5).deviation);
  EXPECT_EQ(high.expert_output(640), low.expert_output(640));
}

TEST(Statistics, ACutWritesAsMuchAsTheWhole) {
  Geometry whole = must(find_geometry("qwen3-next-80b"));
  const Geometry cut = must(changed(whole, {.n_blocks = 6}));
  const auto written = [](const Geometry& g) {
    const Statistics statistics(g.config, {});
    double sum = 0;
    for (uint64_t i = 0; i < g.config.n_blocks; ++i)
      sum += std::pow(statistics.mixer_output(i, 1, 1).deviation, 2);
    return sum;
  };
  EXPECT_NEAR(written(whole), written(cut), 1e-9);
}

}  // namespace
}  // namespace forebay::synth
