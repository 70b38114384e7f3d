// An answer's tokens take nothing from the heap, from the forward pass to the text that is passed on.
#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "support/allocation_counter.h"

namespace forebay {
namespace {

using testing::AllocationCounter;

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

/// Allocations between the tokens `from` and `to` of an answer.
void expect_none(EngineOptions engine_options, const SamplingOptions& sampling, int64_t from, int64_t to) {
  engine_options.model = kModel;
  engine_options.threads = 2;
  Engine engine = Engine::open(engine_options).value();
  Session session = engine.new_session().value();
  const std::vector<int32_t> prompt = engine.tokenize("How does a lock work on a canal?").value();
  GenerateOptions options;
  options.sampling = sampling;
  options.max_tokens = to + 1;
  options.ignore_stop_tokens = true;
  std::optional<AllocationCounter> counter;
  int64_t n = 0, taken = -1;
  std::string who;
  const auto report = session.generate(prompt, options, [&](const GeneratedToken&) {
    if (n == from) counter.emplace();
    if (n == to) {
      taken = counter->count();
      who = counter->first();
      counter.reset();
    }
    ++n;
    return true;
  });
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(taken, 0) << who;
}

class AnswerAllocations : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!AllocationCounter::works()) GTEST_SKIP() << "a sanitizer owns malloc";
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
};

TEST_F(AnswerAllocations, NoneWithExpertsInMemory) {
  SamplingOptions sampling;
  sampling.temperature = 0;
  expect_none({}, sampling, 40, 400);
}

TEST_F(AnswerAllocations, NoneWithEveryStepOfTheSampler) {
  SamplingOptions sampling;
  sampling.seed = 7;
  sampling.repeat_penalty = 1.1f;
  sampling.frequency_penalty = 0.1f;
  sampling.dry_multiplier = 0.5f;
  sampling.typical_p = 0.99f;
  sampling.top_p = 0.95f;
  sampling.min_p = 0.01f;
  EngineOptions options;
  options.int8_activations = true;
  expect_none(options, sampling, 40, 300);
}

TEST_F(AnswerAllocations, NoneWithStreamedExperts) {
  SamplingOptions sampling;
  sampling.seed = 7;
  sampling.top_k = 20;
  EngineOptions options;
  options.experts = ExpertPlacement::kStreamed;
  options.budget_bytes = uint64_t{40} << 20;
  options.int8_activations = true;
  options.route_bias = 0.5f;
  expect_none(options, sampling, 100, 300);
}

}  // namespace
}  // namespace forebay
