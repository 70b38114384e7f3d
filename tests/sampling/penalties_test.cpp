#include <cmath>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<int32_t>;

TEST(LogitBiasTest, AddsBansAndAccumulates) {
  Logits logits = {1, 2, 3, 4};
  SamplingOptions options;
  options.logit_bias = {{0, 0.5f}, {2, -INFINITY}, {3, 1}, {3, -3}, {9, 5}, {-1, 5}};
  apply_logit_bias(logits, options);
  EXPECT_EQ(logits, (Logits{1.5f, 2, -INFINITY, 2}));
}

TEST(PenaltiesTest, RepeatDividesPositiveAndMultipliesNegative) {
  Logits logits = {4, -4, 0, 4};
  SamplingOptions options;
  options.repeat_penalty = 2;
  apply_penalties(logits, Ids{0, 1, 2, 0, 0}, options);
  EXPECT_EQ(logits, (Logits{2, -8, 0, 4}));  // once per token, however often it was seen
}

TEST(PenaltiesTest, PresenceOnceFrequencyPerOccurrence) {
  Logits logits = {10, 10, 10};
  SamplingOptions options;
  options.presence_penalty = 1;
  options.frequency_penalty = 0.5f;
  apply_penalties(logits, Ids{0, 0, 0, 2}, options);
  EXPECT_EQ(logits, (Logits{7.5f, 10, 8.5f}));
}

TEST(PenaltiesTest, RepeatComesBeforeThePenaltiesThatSubtract) {
  Logits logits = {10};
  SamplingOptions options;
  options.repeat_penalty = 2;
  options.presence_penalty = 3;
  apply_penalties(logits, Ids{0}, options);
  EXPECT_EQ(logits, (Logits{2}));
}

TEST(PenaltiesTest, WindowIsTheLastN) {
  const Ids recent = {0, 1, 1, 2};
  const auto penalised = [&](int last_n) {
    Logits logits = {0, 0, 0};
    SamplingOptions options;
    options.frequency_penalty = 1;
    options.penalty_last_n = last_n;
    apply_penalties(logits, recent, options);
    return logits;
  };
  EXPECT_EQ(penalised(-1), (Logits{-1, -2, -1}));
  EXPECT_EQ(penalised(0), (Logits{0, 0, 0}));
  EXPECT_EQ(penalised(1), (Logits{0, 0, -1}));
  EXPECT_EQ(penalised(2), (Logits{0, -1, -1}));
  EXPECT_EQ(penalised(4), (Logits{-1, -2, -1}));
  EXPECT_EQ(penalised(64), (Logits{-1, -2, -1}));
}

TEST(PenaltiesTest, IdsOutsideTheVocabularyArePassedOver) {
  Logits logits = {1, 1};
  SamplingOptions options;
  options.presence_penalty = 1;
  apply_penalties(logits, Ids{-1, 2, 1 << 30, 1}, options);
  EXPECT_EQ(logits, (Logits{1, 0}));
}

TEST(PenaltiesTest, ScratchIsCleanForTheNextCall) {
  SamplingOptions options;
  options.frequency_penalty = 1;
  SamplingScratch scratch;
  for (int call = 0; call < 3; ++call) {
    Logits logits = {0, 0};
    apply_penalties(logits, Ids{1, 1}, options, scratch);
    EXPECT_EQ(logits, (Logits{0, -2})) << "call " << call;
  }
}

TEST(PenaltiesTest, BannedStaysBanned) {
  Logits logits = {-INFINITY, 1};
  SamplingOptions options;
  options.repeat_penalty = 0.5f;
  options.presence_penalty = -5;
  apply_penalties(logits, Ids{0}, options);
  EXPECT_EQ(logits[0], -INFINITY);
}

}  // namespace
}  // namespace forebay
