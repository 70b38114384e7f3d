#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

using Ids = std::vector<int32_t>;

int32_t sampled(const std::vector<float>& logits, const Ids& recent, const SamplingOptions& options,
                uint64_t position) {
  SamplingScratch scratch;
  const Result<int32_t> id = forebay::sample(logits, recent, options, position, scratch);
  EXPECT_TRUE(id) << id.error().message;
  return id ? *id : -1;
}

std::vector<float> random_logits(uint32_t seed, size_t n) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

TEST(SampleTest, GreedyIgnoresSeedAndPosition) {
  const std::vector<float> logits = {1, 7, 3, 7};
  SamplingOptions options;
  options.temperature = 0;
  for (options.seed = 0; options.seed < 20; ++options.seed)
    EXPECT_EQ(sampled(logits, {}, options, options.seed * 3), 1);
}

TEST(SampleTest, EveryStepOfTheChainIsApplied) {
  const std::vector<float> logits = {5, 4, 3, 2, 1};
  SamplingOptions options;
  options.temperature = 0;
  options.logit_bias = {{0, -INFINITY}};
  EXPECT_EQ(sampled(logits, {}, options, 0), 1);
  options.presence_penalty = 1.5f;
  EXPECT_EQ(sampled(logits, {1}, options, 0), 2);
  options.presence_penalty = 0;
  options.dry_multiplier = 3;
  EXPECT_EQ(sampled(logits, {3, 4, 1, 3, 4}, options, 0), 2);
}

TEST(SampleTest, SameSeedSameTextAndPositionsAreIndependent) {
  const std::vector<float> logits = random_logits(1, 2000);
  SamplingOptions options;
  options.seed = 42;
  const auto text = [&](uint64_t first) {
    Ids ids;
    for (uint64_t position = first; position < 50; ++position)
      ids.push_back(sampled(logits, {}, options, position));
    return ids;
  };
  const Ids whole = text(0), tail = text(30);
  EXPECT_EQ(whole, text(0));
  EXPECT_EQ(Ids(whole.begin() + 30, whole.end()), tail);  // no draw depends on the draws before it
  options.seed = 43;
  EXPECT_NE(whole, text(0));
}

TEST(SampleTest, EqualsDrawFromTheDistribution) {
  // 20,000 candidates make the lazy ordering take several chunks.
  for (const float spread : {0.05f, 1.0f, 3.0f}) {
    std::vector<float> logits = random_logits(2, 20'000);
    for (float& logit : logits) logit *= spread;
    std::vector<SamplingOptions> table(6);
    table[1].temperature = 0.3f;
    table[2].top_k = 40;
    table[3].top_p = 0.9f;
    table[4].min_p = 0.02f;
    table[5].typical_p = 0.8f;
    for (SamplingOptions& options : table) {
      options.seed = 7;
      const Distribution distribution = make_distribution(logits, options);
      for (uint64_t position = 0; position < 10; ++position)
        EXPECT_EQ(sampled(logits, {}, options, position), draw(distribution, uniform(7, 0, position)))
            << "spread " << spread << " position " << position;
    }
  }
}

TEST(SampleTest, AllBannedIsAnError) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SamplingOptions banned;
  banned.logit_bias = {{0, -INFINITY}, {1, -INFINITY}};
  SamplingOptions greedy = banned;
  greedy.temperature = 0;
  SamplingScratch scratch;
  for (const SamplingOptions& options : {banned, greedy}) {
    const Result<int32_t> id = forebay::sample(std::vector<float>{1, 2}, {}, options, 0, scratch);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, Code::kCorrupt);
    EXPECT_EQ(id.error().message, "none of 2 logits is finite, wanted at least one");
  }
  EXPECT_FALSE(forebay::sample(std::vector<float>{nan, nan}, {}, {}, 0, scratch));
  EXPECT_FALSE(forebay::sample(std::vector<float>{}, {}, {}, 0, scratch));
}

TEST(SampleTest, ScratchCarriesNothingOver) {
  const std::vector<float> logits = random_logits(3, 500);
  SamplingOptions options;
  options.repeat_penalty = 1.3f;
  options.dry_multiplier = 0.8f;
  options.top_k = 50;
  SamplingScratch reused;
  std::vector<float> logits_only;
  Ids recent;
  for (uint64_t position = 0; position < 60; ++position) {
    const int32_t id = sampled(logits, recent, options, position);
    EXPECT_EQ(*forebay::sample(logits, recent, options, position, reused), id);
    EXPECT_EQ(*forebay::sample(logits, recent, options, position, logits_only), id);
    EXPECT_EQ(logits_only.size(), logits.size());
    recent.push_back(id % 7);
  }
  // A smaller vocabulary afterwards.
  EXPECT_EQ(*forebay::sample(std::vector<float>{0, 9}, Ids{400, 1}, {}, 0, reused), 1);
}

TEST(SampleTest, LogitsAreNotChanged) {
  const std::vector<float> logits = random_logits(4, 100);
  std::vector<float> copy = logits;
  SamplingOptions options;
  options.repeat_penalty = 2;
  options.logit_bias = {{0, 1}};
  sampled(copy, {1, 2, 3}, options, 0);
  EXPECT_EQ(copy, logits);
}

}  // namespace
}  // namespace forebay
