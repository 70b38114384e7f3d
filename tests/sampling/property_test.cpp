/// Random logits and options against the obvious implementation in reference.cpp.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "reference.h"
#include "sampling/sampling.h"

namespace forebay {
namespace {

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int integer(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  float real(float low, float high) { return std::uniform_real_distribution(low, high)(random_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  std::vector<float> logits() {
    const int n = chance(0.3) ? integer(1, 8) : integer(1, 3000);
    std::normal_distribution<float> normal(0, std::exp(real(-3, 2.5f)));
    const bool with_ties = chance(0.3), with_holes = chance(0.3);
    std::vector<float> logits(static_cast<size_t>(n));
    for (float& logit : logits) {
      logit = normal(random_);
      if (with_ties) logit = std::round(logit * 2) / 2;
      if (with_holes && chance(0.2)) logit = chance(0.5) ? -INFINITY : NAN;
    }
    return logits;
  }

  std::vector<int32_t> history(int n_vocab) {
    std::vector<int32_t> recent(static_cast<size_t>(integer(0, 300)));
    const int n_used = std::min(n_vocab, integer(1, 6));  // few tokens, many repeats
    for (int32_t& id : recent) id = integer(0, n_used - 1);
    return recent;
  }

  SamplingOptions options(int n_vocab) {
    SamplingOptions o;
    if (chance(0.5)) o.repeat_penalty = real(0.5f, 2);
    if (chance(0.5)) o.presence_penalty = real(-1, 2);
    if (chance(0.5)) o.frequency_penalty = real(-1, 2);
    o.penalty_last_n = integer(-1, 100);
    o.dry_multiplier = real(0.1f, 2);
    o.dry_base = real(1, 1.2f);
    o.dry_allowed_length = integer(1, 4);
    o.dry_last_n = integer(-1, 200);
    if (chance(0.5)) o.dry_breakers = {integer(0, std::min(n_vocab - 1, 5))};
    if (chance(0.4)) o.top_k = integer(1, 200);
    if (chance(0.4)) o.typical_p = real(0.05f, 0.999f);
    if (chance(0.4)) o.top_p = real(0, 0.999f);
    if (chance(0.4)) o.min_p = real(0, 1);
    o.temperature = chance(0.2) ? 0 : std::exp(real(-3, 2));
    return o;
  }

 private:
  std::mt19937 random_;
};

TEST(PropertyTest, DistributionEqualsTheReference) {
  int n_compared = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    Generator generate(seed);
    const std::vector<float> logits = generate.logits();
    const SamplingOptions options = generate.options(static_cast<int>(logits.size()));
    const reference::Answer expected = reference::make_distribution(logits, options);
    if (expected.margin < 1e-9) continue;  // rounding may decide what survives
    ++n_compared;
    const Distribution actual = make_distribution(logits, options);
    ASSERT_EQ(actual.ids, expected.distribution.ids) << "seed " << seed;
    double sum = 0;
    for (size_t i = 0; i < actual.ids.size(); ++i) {
      ASSERT_NEAR(actual.probabilities[i], expected.distribution.probabilities[i], 1e-12)
          << "seed " << seed << " entry " << i;
      sum += actual.probabilities[i];
    }
    ASSERT_NEAR(sum, actual.ids.empty() ? 0 : 1, 1e-12) << "seed " << seed;
  }
  EXPECT_GT(n_compared, 1300);
}

TEST(PropertyTest, PenaltiesEqualTheReference) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Generator generate(seed);
    std::vector<float> logits = generate.logits();
    for (float& logit : logits)
      if (!std::isfinite(logit)) logit = 0;
    const auto n_vocab = static_cast<int>(logits.size());
    const std::vector<int32_t> recent = generate.history(n_vocab);
    const SamplingOptions options = generate.options(n_vocab);

    std::vector<float> expected = logits, actual = logits;
    reference::apply_penalties(expected, recent, options);
    apply_penalties(actual, recent, options);
    ASSERT_EQ(actual, expected) << "penalties, seed " << seed;

    expected = actual = logits;
    reference::apply_dry(expected, recent, options);
    apply_dry(actual, recent, options);
    for (size_t id = 0; id < actual.size(); ++id)
      ASSERT_FLOAT_EQ(actual[id], expected[id]) << "DRY, seed " << seed << " id " << id;
  }
}

TEST(PropertyTest, SampleEqualsDrawFromTheReference) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Generator generate(seed + 10'000);
    const std::vector<float> logits = generate.logits();
    SamplingOptions options = generate.options(static_cast<int>(logits.size()));
    options.repeat_penalty = 1;
    options.presence_penalty = options.frequency_penalty = options.dry_multiplier = 0;
    options.seed = seed;
    const reference::Answer expected = reference::make_distribution(logits, options);
    if (expected.margin < 1e-9) continue;
    SamplingScratch scratch;
    const Result<int32_t> actual = forebay::sample(logits, {}, options, 5, scratch);
    const int32_t id = actual ? *actual : -1;
    ASSERT_EQ(id, draw(expected.distribution, uniform(seed, 0, 5))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace forebay
