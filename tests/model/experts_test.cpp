// Streamed experts change no bit, whatever the budget and the policy; a failing disk costs one request.
#include <cstring>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

ModelOptions streamed(uint64_t budget_bytes, EvictionPolicy policy = EvictionPolicy::kDecay) {
  ModelOptions options;
  options.experts = ExpertPlacement::kStreamed;
  options.cache.budget_bytes = budget_bytes;
  options.cache.policy = policy;
  return options;
}

/// The least budget a model runs with: one token's experts of its largest block.
uint64_t least_budget(const std::filesystem::path& file) {
  ModelOptions resident;
  resident.experts = ExpertPlacement::kResident;
  LoadedModel m(file, 1, best_isa(), resident);
  const ExpertStore& store = m.model->expert_cache()->store();
  uint64_t least = 0;
  for (int b = 0; b < store.n_blocks(); ++b)
    least = std::max(least, store.slot_bytes(b) * m.model->config().ffn.n_used);
  return least;
}

class StreamedExperts : public ::testing::TestWithParam<std::string> {};

TEST_P(StreamedExperts, GiveTheBitsOfMappedOnesAtEveryBudgetAndPolicy) {
  const std::filesystem::path file = testing::converted_vectors(GetParam(), "q8_0");
  std::vector<int32_t> ids = testing::expected_of(GetParam()).ints("ids");
  ids.resize(90);  // past the sparse budget of 64 cells
  LoadedModel mapped(file);
  const std::vector<float> want = mapped.logits(ids);
  const uint64_t least = least_budget(file);
  for (uint64_t budget : {least, 3 * least, uint64_t{1} << 30})
    for (EvictionPolicy policy : {EvictionPolicy::kDecay, EvictionPolicy::kLru, EvictionPolicy::kLfu}) {
      LoadedModel m(file, 2, best_isa(), streamed(budget, policy));
      for (int64_t window : {1, 256}) {
        const std::vector<float> got = m.logits(ids, window);
        EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0)
            << "budget " << budget << ", policy " << name_of(policy) << ", window " << window;
      }
      const ExpertCacheStats stats = m.model->expert_cache()->stats();
      EXPECT_LE(stats.peak_bytes, budget);
      EXPECT_GT(stats.n_misses, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Families, StreamedExperts,
                         ::testing::Values("qwen3moe", "qwen3next", "qwen35moe", "qwen4exp"),
                         [](const auto& i) { return i.param; });

TEST(StreamedExpertsFaults, AFailedReadResetsTheSequenceAndNothingElse) {
  const std::filesystem::path path = testing::converted_vectors("qwen3moe", "q8_0");
  const std::vector<int32_t> ids = testing::expected_of("qwen3moe").ints("ids");
  LoadedModel mapped(path);
  const std::vector<float> want = mapped.logits(ids);
  const auto below = make_posix_storage();
  for (int fail_at : {1, 2, 3, 7, 20, 50}) {
    FaultPlan plan;
    plan.op = StorageOp::kRead;
    plan.fail_at = fail_at;
    FaultyStorage faulty(*below, plan);
    const GgufFile file = GgufFile::open(*below, path).value();
    ThreadPool pool(2);
    KernelContext kernels(pool, best_isa());
    MemoryBudget budget;
    Model model = Model::load(faulty, file, nullptr, streamed(least_budget(path)), kernels, budget).value();
    SequenceState state = model.new_state(256).value();
    const Span span{&state, ids, LogitRows::kAll};
    const Result<ForwardOutput> failed = model.forward({&span, 1});
    ASSERT_FALSE(failed.has_value());
    EXPECT_NE(failed.error().message.find("injected fault"), std::string::npos) << failed.error().message;
    EXPECT_EQ(state.n_cells(), 0);
    const Result<ForwardOutput> again = model.forward({&span, 1});
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(std::memcmp(again->logits.data, want.data(), want.size() * sizeof(float)), 0);
  }
}

TEST(StreamedExpertsBudget, TooSmallIsRefusedWithTheNumber) {
  const std::filesystem::path path = testing::converted_vectors("qwen4exp", "q8_0");
  const auto storage = make_posix_storage();
  const GgufFile file = GgufFile::open(*storage, path).value();
  ThreadPool pool(1);
  KernelContext kernels(pool, best_isa());
  MemoryBudget budget;
  const Result<Model> model = Model::load(*storage, file, nullptr, streamed(1000), kernels, budget);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message, "expert budget: 1000 bytes, one token needs 4 experts at once: at least " +
                                       std::to_string(least_budget(path)) + " bytes");
}

}  // namespace
}  // namespace forebay
