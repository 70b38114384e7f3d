#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include "plan/plan_text.h"
#include "sizes.h"
#include "support/result_matchers.h"
#include "tiny_model.h"

namespace forebay {
namespace {

PlanRequest tiny_request() {
  PlanRequest request;
  request.context = 1000;
  request.chunk = 8;
  return request;
}

Result<MemoryPlan> plan_with(uint64_t budget_bytes, const PlanRequest& request = tiny_request()) {
  return plan_memory(testing::tiny_model(), request, {budget_bytes, "given"}, assumed_rates());
}

TEST(MemoryPlan, NumbersByHand) {
  const Result<MemoryPlan> plan = plan_with(kGiB);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->bytes_of("trunk"), 2u * 12800 + 128 + 2 * 4 * (32 + 1024 + 128));
  EXPECT_EQ(plan->bytes_of("small_weights"), 3u * 128);
  // Two blocks, keys and values, 16 values of 4 bytes per token.
  EXPECT_EQ(plan->bytes_of("state"), 2u * 2 * 16 * 4 * 1000);
  EXPECT_EQ(plan->bytes_of("snapshots"), 0u) << "attention alone has nothing to copy";
  EXPECT_EQ(plan->bytes_of("logits"), 100u * 4);
  EXPECT_EQ(plan->bytes_of("ngram_rows"), 0u);
  EXPECT_GE(plan->program_bytes, 32 * kMiB) << "beside the budget";
  EXPECT_EQ(plan->least_arena_bytes, 2u * 36864);
  EXPECT_EQ(plan->all_experts_bytes, 8u * 36864);
  EXPECT_EQ(plan->arena_bytes, plan->all_experts_bytes) << "more than all experts serves nothing";
  EXPECT_TRUE(plan->all_resident());
  EXPECT_EQ(plan->speed.hit_rate, 1);
  EXPECT_EQ(plan->speed.disk_bytes, 0u);
  EXPECT_EQ(plan->sum_bytes(), plan->fixed_bytes() + plan->arena_bytes);
}

TEST(MemoryPlan, TheArenaIsTheRestOfTheBudget) {
  const uint64_t fixed = plan_with(kGiB)->fixed_bytes();
  const Result<MemoryPlan> plan = plan_with(fixed + 4 * 36864);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->arena_bytes, 4u * 36864);
  EXPECT_EQ(plan->sum_bytes(), plan->budget.bytes);
  EXPECT_EQ(plan->shelf_bytes, 4u * 36864 / 16);
  EXPECT_DOUBLE_EQ(plan->speed.resident_share, 0.5 * 15 / 16);
  EXPECT_GT(plan->speed.disk_bytes, 0u);
  EXPECT_FALSE(plan->all_resident());
  PlanRequest request = tiny_request();
  request.prefetch = false;
  EXPECT_EQ(plan_with(plan->budget.bytes, request)->shelf_bytes, 0u);
  EXPECT_DOUBLE_EQ(plan_with(plan->budget.bytes, request)->speed.resident_share, 0.5);
}

TEST(MemoryPlan, TheContextDefaultsToTheModelsAtMost8192) {
  PlanRequest request = tiny_request();
  request.context = 0;
  EXPECT_EQ(plan_with(kGiB, request)->request.context, 8192);
  ModelConfig config = testing::tiny_config();
  config.context_length = 512;
  const ModelFootprint model = ModelFootprint::from_tensors(config, testing::tiny_tensors(), false);
  EXPECT_EQ(plan_memory(model, request, {kGiB, "given"}, assumed_rates())->request.context, 512);
}

/// Case 40: a budget below one token's demand is refused with the number that works.
TEST(MemoryPlan, RefusesWithWhatWouldFit) {
  const ModelFootprint model = testing::tiny_model();
  const PlanLimits limits = plan_limits(model, tiny_request(), 0);
  EXPECT_EQ(limits.largest_context, 0);
  EXPECT_EQ(limits.largest_chunk, 0);
  EXPECT_OK(plan_with(limits.least_budget));
  EXPECT_EQ(plan_with(limits.least_budget)->arena_bytes, 2u * 36864);
  EXPECT_TRUE(fails_with(plan_with(limits.least_budget - 1), Code::kOutOfMemory, "budget", "trunk",
                         "one token's experts", "--budget"));
  EXPECT_TRUE(fails_with(plan_with(0), Code::kOutOfMemory, "0 B", "would fit: --budget"));
}

TEST(MemoryPlan, AShorterContextOrASmallerChunkMayFit) {
  PlanRequest request = tiny_request();
  request.context = 1'000'000;
  request.chunk = 4096;
  const uint64_t least = plan_limits(testing::tiny_model(), request, 0).least_budget;
  const uint64_t budget = least - kMiB;
  const PlanLimits limits = plan_limits(testing::tiny_model(), request, budget);
  ASSERT_GT(limits.largest_context, 0);
  ASSERT_GT(limits.largest_chunk, 0);
  EXPECT_TRUE(fails_with(plan_with(budget, request), Code::kOutOfMemory,
                         "--context " + std::to_string(limits.largest_context),
                         "--chunk " + std::to_string(limits.largest_chunk)));

  // Both are the largest: one more does not fit.
  for (const int64_t more : {0, 1}) {
    PlanRequest shorter = request;
    shorter.context = limits.largest_context + more;
    EXPECT_EQ(plan_with(budget, shorter).has_value(), more == 0);
    PlanRequest smaller = request;
    smaller.chunk = limits.largest_chunk + more;
    EXPECT_EQ(plan_with(budget, smaller).has_value(), more == 0);
  }
}

TEST(MemoryPlan, ABudgetThatTheMachineDoesNotHaveIsNotProposed) {
  const ModelFootprint model = testing::tiny_model();
  PlanRequest request = tiny_request();
  request.context = 1'000'000;
  const uint64_t least = plan_limits(model, request, 0).least_budget;
  const auto plan = [&](uint64_t bytes, uint64_t largest) {
    return plan_memory(model, request, {bytes, "what is free", largest}, assumed_rates());
  };
  const uint64_t budget = least - kMiB;
  EXPECT_TRUE(fails_with(plan(budget, least), Code::kOutOfMemory, "would fit: --budget", "--context"));
  const Result<MemoryPlan> refused = plan(budget, least - 1);
  EXPECT_TRUE(fails_with(refused, Code::kOutOfMemory, "would fit: --context"));
  EXPECT_EQ(refused.error().message.find("--budget"), std::string::npos);
  EXPECT_TRUE(fails_with(plan(kMiB / 16, kMiB / 16), Code::kOutOfMemory, "no context or chunk"));
}

TEST(MemoryPlan, OutOfRangeIsNamed) {
  PlanRequest request = tiny_request();
  request.chunk = -1;
  EXPECT_TRUE(fails_with(plan_with(kGiB, request), Code::kInvalidArgument, "chunk: -1", "to 65536"));
  request = tiny_request();
  request.context = -1;
  EXPECT_TRUE(fails_with(plan_with(kGiB, request), Code::kInvalidArgument, "context: -1"));
}

TEST(MemoryPlan, MoreBudgetIsNeverWorse) {
  const uint64_t least = plan_limits(testing::tiny_model(), tiny_request(), 0).least_budget;
  double hits = 0, seconds = 1e9;
  uint64_t arena = 0;
  for (uint64_t budget = least; budget < least + 10 * 36864; budget += 5000) {
    const Result<MemoryPlan> plan = plan_with(budget);
    ASSERT_OK(plan);
    EXPECT_GE(plan->arena_bytes, arena);
    EXPECT_GE(plan->speed.hit_rate, hits);
    EXPECT_LE(plan->speed.seconds_per_token(), seconds);
    EXPECT_LE(plan->sum_bytes(), budget);
    arena = plan->arena_bytes;
    hits = plan->speed.hit_rate;
    seconds = plan->speed.seconds_per_token();
  }
  EXPECT_EQ(hits, 1);
}

TEST(MemoryPlan, EveryPartOfTheRequestChangesThePlan) {
  const uint64_t before = plan_with(kGiB)->fixed_bytes();
  PlanRequest request = tiny_request();
  request.context = 2000;
  EXPECT_GT(plan_with(kGiB, request)->fixed_bytes(), before);
  request = tiny_request();
  request.chunk = 16;
  EXPECT_GT(plan_with(kGiB, request)->fixed_bytes(), before);
  request = tiny_request();
  request.n_logit_rows = 8;
  EXPECT_EQ(plan_with(kGiB, request)->fixed_bytes(), before + 7 * 400);
}

TEST(MemoryPlan, AChunkThatIsLeftOpenGrowsWithTheBudget) {
  PlanRequest request = tiny_request();
  request.context = 100'000;
  request.chunk = 0;
  const uint64_t least = plan_limits(testing::tiny_model(), request, 0).least_budget;
  EXPECT_FALSE(plan_with(least - 1, request).has_value());
  int64_t chunk = 0;
  for (uint64_t budget = least; budget < 2 * least; budget += least / 50) {
    const Result<MemoryPlan> plan = plan_with(budget, request);
    ASSERT_OK(plan);
    EXPECT_GE(plan->request.chunk, chunk);
    chunk = plan->request.chunk;
    PlanRequest given = request;
    given.chunk = chunk;
    EXPECT_EQ(plan_with(budget, given)->sum_bytes(), plan->sum_bytes());
  }
  EXPECT_EQ(chunk, 2048);
  request.context = 100;
  EXPECT_EQ(plan_with(kGiB, request)->request.chunk, 128) << "no larger than the context needs";
}

/// Case 46: the n-gram table is reported apart, and what is kept of it is capped.
TEST(MemoryPlan, TheNgramTableStaysOnDisk) {
  std::vector<TensorInfo> tensors = testing::tiny_tensors();
  tensors.push_back(testing::f32_tensor("per_layer_token_embd.weight", {32, 10'000'000}));
  const ModelFootprint model = ModelFootprint::from_tensors(testing::tiny_config(), tensors, false);
  PlanRequest request = tiny_request();
  const Result<MemoryPlan> plan = plan_memory(model, request, {kGiB, "given"}, assumed_rates());
  ASSERT_OK(plan);
  EXPECT_EQ(plan->ngram_bytes, 1'280'000'000u);
  EXPECT_EQ(plan->bytes_of("ngram_rows"), 64 * kMiB);
  EXPECT_EQ(plan->bytes_of("trunk"), plan_with(kGiB)->bytes_of("trunk"));
  request.ngram_cache_bytes = kMiB;
  EXPECT_EQ(plan_memory(model, request, {kGiB, "given"}, assumed_rates())->bytes_of("ngram_rows"), kMiB);
}

TEST(MemoryPlan, DenseModelsHaveNoArena) {
  ModelConfig config = testing::tiny_config();
  config.ffn = {.d_ffn = 64, .n_experts = 0, .n_used = 0, .d_expert = 0, .d_shared = 0, .weights_scale = 1};
  std::vector<TensorInfo> tensors = testing::tiny_tensors();
  std::erase_if(tensors, [](const TensorInfo& t) { return t.name.find("_exps") != std::string::npos; });
  const ModelFootprint model = ModelFootprint::from_tensors(config, tensors, false);
  const Result<MemoryPlan> plan = plan_memory(model, tiny_request(), {kGiB, "given"}, assumed_rates());
  ASSERT_OK(plan);
  EXPECT_EQ(plan->arena_bytes, 0u);
  EXPECT_EQ(plan->speed.disk_bytes, 0u);
  EXPECT_EQ(plan->speed.bound(), "trunk");
  EXPECT_EQ(plan_table(*plan).find("hits"), std::string::npos) << plan_table(*plan);
}

TEST(PlanText, TheCompactFormHasAtMostEightLines) {
  std::vector<TensorInfo> tensors = testing::tiny_tensors();
  tensors.push_back(testing::f32_tensor("per_layer_token_embd.weight", {32, 1000}));
  const ModelFootprint model = ModelFootprint::from_tensors(testing::tiny_config(), tensors, false);
  const uint64_t least = plan_limits(model, tiny_request(), 0).least_budget;
  const Result<MemoryPlan> plan = plan_memory(model, tiny_request(), {least, "given"}, assumed_rates());
  ASSERT_OK(plan);
  const std::string lines = plan_lines(*plan);
  EXPECT_LE(std::count(lines.begin(), lines.end(), '\n'), 8);
  for (const char* part :
       {"plan: budget", "trunk", "state", "scratch", "experts", "expected hits", "n-gram table", "tok/s"})
    EXPECT_NE(lines.find(part), std::string::npos) << part << " in\n" << lines;
  const std::string table = plan_table(*plan);
  for (const PlanItem& item : plan->items)
    EXPECT_NE(table.find(item.why), std::string::npos) << item.name << " in\n" << table;
}

}  // namespace
}  // namespace forebay
