// A decode step takes nothing from the heap once the first ones have run: scratch is kept.
#include <gtest/gtest.h>

#include "support/allocation_counter.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::AllocationCounter;
using testing::LoadedModel;

constexpr int64_t kContext = 1200;

ModelOptions streamed(const std::filesystem::path& file, ReadEngine engine) {
  LoadedModel whole(file, 1, best_isa(), {.experts = ExpertPlacement::kResident});
  ModelOptions options;
  options.experts = ExpertPlacement::kStreamed;
  // A quarter of the experts, and somewhere to read ahead to: slots change hands all the time.
  options.cache.budget_bytes = whole.model->expert_cache()->store().all_slot_bytes() / 4;
  options.cache.shelf_bytes = options.cache.budget_bytes / 4;
  options.cache.engine = engine;
  return options;
}

/// Allocations of steps [from, to) of two sequences in one window, their tokens made up.
void expect_none(LoadedModel& m, int64_t from, int64_t to) {
  SequenceState a = m.state(kContext), b = m.state(kContext);
  uint64_t random = 1;
  const auto token = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int32_t>((random >> 33) % static_cast<uint64_t>(m.model->config().n_vocab));
  };
  std::vector<int32_t> prompt;
  for (int i = 0; i < 40; ++i) prompt.push_back(token());
  for (SequenceState* state : {&a, &b}) {
    const Span span{state, prompt, LogitRows::kLast};
    ASSERT_TRUE(m.model->forward({&span, 1}).has_value());
  }
  int32_t tokens[2] = {};
  const Span window[2] = {{&a, {&tokens[0], 1}}, {&b, {&tokens[1], 1}}};
  const auto step = [&](size_t n_sequences) {
    for (int32_t& t : tokens) t = token();
    return m.model->forward(std::span(window).first(n_sequences)).has_value();
  };
  for (int64_t i = 0; i < from; ++i) ASSERT_TRUE(step(1 + i % 2));
  const AllocationCounter counter;
  bool all_ran = true;
  for (int64_t i = from; i < to; ++i) all_ran = step(1 + i % 2) && all_ran;
  EXPECT_TRUE(all_ran);
  EXPECT_EQ(counter.count(), 0) << counter.first();
}

class DecodeAllocations : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!AllocationCounter::works()) GTEST_SKIP() << "a sanitizer owns malloc";
  }
};

TEST_P(DecodeAllocations, NoneWithEverythingInMemory) {
  for (const char* type : {"bf16", "q8_0"}) {
    LoadedModel m(testing::converted_vectors(GetParam(), type));
    m.kernels.set_activations(Activations::kInt8);
    // Over the border of an attention segment, and of the blocks that sparse attention looks at whole.
    expect_none(m, 30, 560);
  }
}

TEST_P(DecodeAllocations, NoneWithStreamedExperts) {
  const std::filesystem::path file = testing::converted_vectors(GetParam(), "q8_0");
  if (LoadedModel(file, 1).model->config().ffn.n_experts == 0) GTEST_SKIP() << "a dense family";
  for (const ReadEngine engine : {ReadEngine::kAuto, ReadEngine::kThreads}) {
    LoadedModel m(file, 2, best_isa(), streamed(file, engine));
    m.kernels.set_activations(Activations::kInt8);
    expect_none(m, 60, 200);
    EXPECT_GT(m.model->expert_cache()->stats().n_evictions, 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DecodeAllocations, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace forebay
