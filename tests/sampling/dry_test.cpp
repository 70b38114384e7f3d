#include <cmath>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<int32_t>;

SamplingOptions dry(std::vector<int32_t> breakers = {}) {
  SamplingOptions options;
  options.dry_multiplier = 1;
  options.dry_base = 2;
  options.dry_allowed_length = 2;
  options.dry_breakers = std::move(breakers);
  return options;
}

/// What DRY takes from each token of a vocabulary of ten.
Logits taken(const Ids& recent, const SamplingOptions& options) {
  Logits logits(10, 0.0f);
  apply_dry(logits, recent, options);
  for (float& logit : logits) logit = 0 - logit;
  return logits;
}

TEST(DryTest, PenalisesTheTokenThatContinuesARepeat) {
  // "1 2 3 4 ... 1 2 3": 4 would extend a repeat of length 3 to 4, one over the allowed 2.
  EXPECT_EQ(taken({1, 2, 3, 4, 9, 1, 2, 3}, dry()), (Logits{0, 0, 0, 0, 2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(taken({1, 2, 3, 4, 9, 2, 3}, dry()), (Logits{0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(taken({1, 2, 3, 4, 9, 3}, dry()), Logits(10, 0.0f));  // length 1 is allowed
}

TEST(DryTest, TheLongestMatchOfATokenCounts) {
  // 5 followed "2 3" and "1 2 3"; 6 followed "2 3".
  EXPECT_EQ(taken({8, 2, 3, 5, 1, 2, 3, 5, 7, 2, 3, 6, 1, 2, 3}, dry()),
            (Logits{0, 0, 0, 0, 0, 2, 1, 0, 0, 0}));
}

TEST(DryTest, MatchesMayOverlap) {
  // 1 1 1 1: the last three also end one place earlier, so a fifth 1 extends a match of three.
  EXPECT_EQ(taken({1, 1, 1, 1}, dry()), (Logits{0, 2, 0, 0, 0, 0, 0, 0, 0, 0}));
  // 1 2 1 2 1: "1 2 1" recurs two places earlier; 2 followed it.
  EXPECT_EQ(taken({1, 2, 1, 2, 1}, dry()), (Logits{0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(DryTest, BreakersEndTheMatchAndAreNeverPenalised) {
  const Ids recent = {1, 2, 3, 4, 1, 2, 3};
  EXPECT_EQ(taken(recent, dry())[4], 2);
  EXPECT_EQ(taken(recent, dry({1}))[4], 1);  // only "2 3" can match
  EXPECT_EQ(taken(recent, dry({2}))[4], 0);  // "3" is within the allowed length
  EXPECT_EQ(taken(recent, dry({3}))[4], 0);  // nothing before the next token
  EXPECT_EQ(taken(recent, dry({4}))[4], 0);  // the continuation itself is a breaker
  EXPECT_EQ(taken(recent, dry({5}))[4], 2);
}

TEST(DryTest, LooksAtTheLastN) {
  const Ids recent = {1, 2, 3, 4, 1, 2, 3};
  SamplingOptions options = dry();
  options.dry_last_n = 7;
  EXPECT_EQ(taken(recent, options)[4], 2);
  options.dry_last_n = 6;  // the first 1 is out of sight
  EXPECT_EQ(taken(recent, options)[4], 1);
  options.dry_last_n = 5;
  EXPECT_EQ(taken(recent, options)[4], 0);
  options.dry_last_n = 0;
  EXPECT_EQ(taken(recent, options), Logits(10, 0.0f));
}

TEST(DryTest, MultiplierAndBase) {
  SamplingOptions options = dry();
  options.dry_multiplier = 0.8f;
  options.dry_base = 1.75f;
  const float expected = static_cast<float>(static_cast<double>(0.8f) * 1.75 * 1.75);
  EXPECT_EQ(taken({1, 2, 3, 4, 5, 1, 2, 3, 4}, options)[5], expected);
  options.dry_multiplier = 0;
  EXPECT_EQ(taken({1, 2, 3, 4, 5, 1, 2, 3, 4}, options), Logits(10, 0.0f));
}

TEST(DryTest, AnEndlessRepeatStaysFinite) {
  Logits logits = {1, 0};
  apply_dry(logits, Ids(5000, 0), dry());  // 2^4997 overflows a double
  EXPECT_TRUE(std::isfinite(logits[0]));
  EXPECT_LT(logits[0], -1e37f);
}

TEST(DryTest, EmptyShortAndForeignHistories) {
  EXPECT_EQ(taken({}, dry()), Logits(10, 0.0f));
  EXPECT_EQ(taken({1}, dry()), Logits(10, 0.0f));
  EXPECT_EQ(taken({1, 2, 50, 1, 2}, dry()), Logits(10, 0.0f));  // the continuation is outside the vocabulary
  EXPECT_EQ(taken({50, 51, 3, 50, 51}, dry())[3], 1);           // what it follows may be
}

TEST(DryTest, LongHistoriesAreLinear) {
  // Quadratic work on these 300,000 tokens would be 4.5e10 steps.
  Ids recent(300'000, 1);
  Logits logits(10, 0.0f);
  SamplingOptions options = dry();
  options.dry_base = 1;
  apply_dry(logits, recent, options);
  EXPECT_EQ(logits[1], -1);
}

}  // namespace
}  // namespace forebay
