#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

constexpr int kVocabulary = 100;

TEST(ValidateTest, DefaultsAndEdgesAreValid) {
  EXPECT_TRUE(validate({}, kVocabulary));
  SamplingOptions edges;
  edges.logit_bias = {{0, -INFINITY}, {99, 3.5f}};
  edges.repeat_penalty = 0.5f;
  edges.presence_penalty = -2;
  edges.frequency_penalty = 2;
  edges.penalty_last_n = -1;
  edges.dry_multiplier = 0.8f;
  edges.dry_base = 1;
  edges.dry_allowed_length = 1;
  edges.dry_last_n = 0;
  edges.dry_breakers = {0, 99};
  edges.top_k = 1000;
  edges.typical_p = 0.01f;
  edges.top_p = 0;
  edges.min_p = 1;
  edges.temperature = 0;
  EXPECT_TRUE(validate(edges, kVocabulary));
}

struct BadOption {
  std::function<void(SamplingOptions&)> set;
  std::string message;
};

TEST(ValidateTest, EveryBadOptionIsNamedWithValueAndRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  const std::string token = ", wanted a token id below 100", finite = ", wanted a finite number";
  const std::vector<BadOption> table = {
      {[](auto& o) {
         o.logit_bias = {{3, 1.0f}, {-1, 0.0f}};
       },
       "logit_bias token is -1" + token},
      {[](auto& o) {
         o.logit_bias = {{100, 0.0f}};
       },
       "logit_bias token is 100" + token},
      {[&](auto& o) {
         o.logit_bias = {{7, inf}};
       },
       "logit_bias of token 7 is inf" + finite + " or -inf"},
      {[&](auto& o) {
         o.logit_bias = {{7, nan}};
       },
       "logit_bias of token 7 is nan" + finite + " or -inf"},
      {[](auto& o) { o.repeat_penalty = 0; }, "repeat_penalty is 0" + finite + " above 0"},
      {[](auto& o) { o.repeat_penalty = -1.5f; }, "repeat_penalty is -1.5" + finite + " above 0"},
      {[&](auto& o) { o.repeat_penalty = inf; }, "repeat_penalty is inf" + finite + " above 0"},
      {[&](auto& o) { o.presence_penalty = nan; }, "presence_penalty is nan" + finite},
      {[&](auto& o) { o.frequency_penalty = -inf; }, "frequency_penalty is -inf" + finite},
      {[](auto& o) { o.penalty_last_n = -2; }, "penalty_last_n is -2, wanted -1 or more"},
      {[](auto& o) { o.dry_multiplier = -0.5f; }, "dry_multiplier is -0.5" + finite + ", 0 or more"},
      {[&](auto& o) { o.dry_multiplier = inf; }, "dry_multiplier is inf" + finite + ", 0 or more"},
      {[](auto& o) { o.dry_base = 0.5f; }, "dry_base is 0.5" + finite + ", 1 or more"},
      {[](auto& o) { o.dry_allowed_length = 0; }, "dry_allowed_length is 0, wanted 1 or more"},
      {[](auto& o) { o.dry_last_n = -7; }, "dry_last_n is -7, wanted -1 or more"},
      {[](auto& o) {
         o.dry_breakers = {5, 100};
       },
       "dry_breakers token is 100" + token},
      {[](auto& o) { o.top_k = -1; }, "top_k is -1, wanted 0 or more"},
      {[](auto& o) { o.typical_p = 0; }, "typical_p is 0, wanted above 0, at most 1"},
      {[](auto& o) { o.typical_p = 1.5f; }, "typical_p is 1.5, wanted above 0, at most 1"},
      {[](auto& o) { o.top_p = -0.25f; }, "top_p is -0.25, wanted 0 to 1"},
      {[](auto& o) { o.top_p = 1.5f; }, "top_p is 1.5, wanted 0 to 1"},
      {[&](auto& o) { o.top_p = nan; }, "top_p is nan, wanted 0 to 1"},
      {[](auto& o) { o.min_p = 2; }, "min_p is 2, wanted 0 to 1"},
      {[](auto& o) { o.temperature = -1; }, "temperature is -1" + finite + ", 0 or more"},
      {[&](auto& o) { o.temperature = nan; }, "temperature is nan" + finite + ", 0 or more"},
      {[&](auto& o) { o.temperature = inf; }, "temperature is inf" + finite + ", 0 or more"},
  };
  for (const BadOption& bad : table) {
    SamplingOptions options;
    bad.set(options);
    const Result<void> result = validate(options, kVocabulary);
    ASSERT_FALSE(result) << bad.message;
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
    EXPECT_EQ(result.error().message, bad.message);
  }
}

}  // namespace
}  // namespace forebay
