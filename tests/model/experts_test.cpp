// Streamed experts change no bit, whatever the budget and the policy; a failing disk costs one request.
#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

constexpr EvictionPolicy kPolicies[] = {EvictionPolicy::kDecay,    EvictionPolicy::kLru,
                                        EvictionPolicy::kLfu,      EvictionPolicy::kEma,
                                        EvictionPolicy::kNearPick, EvictionPolicy::kInverse};

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
    for (EvictionPolicy policy : kPolicies) {
      // At the ends, nothing or everything is evicted: the policy hardly matters.
      if (budget != 3 * least && policy != EvictionPolicy::kDecay && policy != EvictionPolicy::kLru) continue;
      ModelOptions options = streamed(budget, policy);
      // Every second policy reads ahead, every third reads with threads.
      if (static_cast<int>(policy) % 2 == 0) options.cache.shelf_bytes = budget / 4;
      if (static_cast<int>(policy) % 3 == 0) options.cache.engine = ReadEngine::kThreads;
      LoadedModel m(file, 2, best_isa(), options);
      for (int64_t window : {1, 256}) {
        const std::vector<float> got = m.logits(ids, window);
        EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0)
            << "budget " << budget << ", policy " << name_of(policy) << ", window " << window;
      }
      const ExpertCacheStats stats = m.model->expert_cache()->stats();
      EXPECT_LE(stats.peak_bytes, budget);
      EXPECT_GT(stats.n_misses, 0u);
      if (options.cache.shelf_bytes > 0 && budget > 2 * least) {
        EXPECT_GT(stats.n_prefetch_used, 0u);
      }
    }
}

TEST_P(StreamedExperts, MayChangeTheirBudgetBetweenWindows) {
  const std::filesystem::path file = testing::converted_vectors(GetParam(), "q8_0");
  std::vector<int32_t> ids = testing::expected_of(GetParam()).ints("ids");
  ids.resize(60);
  LoadedModel mapped(file);
  const std::vector<float> want = mapped.logits(ids);
  const uint64_t least = least_budget(file);
  ModelOptions options = streamed(8 * least);
  options.cache.shelf_bytes = least;
  LoadedModel m(file, 2, best_isa(), options);
  SequenceState state = m.model->new_state(256).value();
  const auto n_vocab = static_cast<size_t>(m.model->config().n_vocab);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % 7 == 6) {
      ASSERT_TRUE(m.model->expert_cache()->resize(least * (i % 2 == 0 ? 1 : 5)).has_value());
      EXPECT_LE(m.model->expert_cache()->stats().resident_bytes, least * (i % 2 == 0 ? 1 : 5));
    }
    const Span span{&state, std::span(ids).subspan(i, 1), LogitRows::kLast};
    const ForwardOutput out = m.model->forward({&span, 1}).value();
    ASSERT_EQ(std::memcmp(out.logits.data, want.data() + i * n_vocab, n_vocab * sizeof(float)), 0) << i;
  }
}

TEST_P(StreamedExperts, RoutedByWhatIsInMemoryGiveTheSameBitsEveryTime) {
  const std::filesystem::path file = testing::converted_vectors(GetParam(), "q8_0");
  std::vector<int32_t> ids = testing::expected_of(GetParam()).ints("ids");
  LoadedModel mapped(file);
  const std::vector<float> exact = mapped.logits(ids);
  ModelOptions options = streamed(3 * least_budget(file));
  options.routing.decode = {.lambda = 2, .protect = 1};
  std::vector<std::vector<float>> runs;
  std::vector<uint64_t> misses;
  for (bool ahead : {false, true})
    for (ReadEngine engine : {ReadEngine::kAuto, ReadEngine::kThreads}) {
      options.cache.engine = engine;
      // The shelf takes room of its own, so that the arena stays the same.
      options.cache.shelf_bytes = ahead ? least_budget(file) : 0;
      ModelOptions with_shelf = options;
      with_shelf.cache.budget_bytes += with_shelf.cache.shelf_bytes;
      LoadedModel m(file, 2, best_isa(), with_shelf);
      runs.push_back(m.logits(ids, 1));
      misses.push_back(m.model->expert_cache()->stats().n_misses +
                       m.model->expert_cache()->stats().n_prefetch_used);
    }
  for (size_t i = 1; i < runs.size(); ++i) {
    EXPECT_EQ(std::memcmp(runs[0].data(), runs[i].data(), exact.size() * sizeof(float)), 0) << i;
    EXPECT_EQ(misses[0], misses[i]);
  }
  EXPECT_NE(std::memcmp(runs[0].data(), exact.data(), exact.size() * sizeof(float)), 0);
  LoadedModel plain(file, 2, best_isa(), streamed(3 * least_budget(file)));
  (void)plain.logits(ids, 1);
  EXPECT_LT(misses[0], plain.model->expert_cache()->stats().n_misses);
}

/// What was chosen, beside what the router ranked.
struct Choices : RouteObserver {
  struct Row {
    std::vector<int32_t> ranked, chosen;
    bool exact(size_t n) const {
      return std::is_permutation(chosen.begin(), chosen.end(), ranked.begin(),
                                 ranked.begin() + static_cast<std::ptrdiff_t>(n));
    }
    bool has(int32_t expert) const { return std::count(chosen.begin(), chosen.end(), expert) > 0; }
  };
  void on_route(const RouteEvent& event) override {
    RouteRanker ranker(static_cast<int>(event.logits_E.size()));
    const RouteCandidates head = ranker.rank(event.logits_E);
    rows[event.block].push_back(
        {{head.ids.begin(), head.ids.end()}, {event.chosen.begin(), event.chosen.end()}});
  }
  std::map<int, std::vector<Row>> rows;
};

// Of a prompt the body is biased but for its first ranks, and its end is not; an answer's rows are apart.
TEST_P(StreamedExperts, APromptsBodyMayBeBiasedItsEndIsExact) {
  const std::filesystem::path file = testing::converted_vectors(GetParam(), "q8_0");
  std::vector<int32_t> ids = testing::expected_of(GetParam()).ints("ids");
  ids.resize(80);
  EXPECT_EQ(RoutingOptions().prompt.protect, 4);
  EXPECT_EQ(RoutingOptions().decode.protect, 3);
  ModelOptions options = streamed(8 * least_budget(file));
  options.routing.prompt = {.lambda = 1000, .protect = 2, .window = 8};
  Choices choices;
  options.trace = &choices;
  LoadedModel m(file, 2, best_isa(), options);
  SequenceState state = m.state(100);
  constexpr int64_t kChunk = 2, kExact = 19;  // the end begins within a chunk
  for (int64_t first = 0; first < 80; first += kChunk) {
    Span span{&state, std::span(ids).subspan(first, kChunk), LogitRows::kNone};
    span.prompt = first < 64;  // then an answer
    span.n_exact = std::clamp<int64_t>(first + kChunk - (64 - kExact), 0, kChunk);
    ASSERT_TRUE(m.model->forward({&span, 1}).has_value());
  }
  const auto n_used = static_cast<size_t>(m.model->config().ffn.n_used);
  int n_promoted = 0;
  for (const auto& [block, rows] : choices.rows) {
    ASSERT_EQ(rows.size(), 80u);
    for (size_t t = 0; t < rows.size(); ++t) {
      const Choices::Row& row = rows[t];
      if (t >= 64 - kExact) {
        EXPECT_TRUE(row.exact(n_used)) << "block " << block << ", token " << t;
        continue;
      }
      n_promoted += !row.exact(n_used);
      EXPECT_TRUE(row.has(row.ranked[0]) && row.has(row.ranked[1])) << "block " << block << ", token " << t;
      for (const int32_t e : row.chosen)
        EXPECT_LT(std::find(row.ranked.begin(), row.ranked.end(), e) - row.ranked.begin(), 8);
    }
  }
  EXPECT_GT(n_promoted, 20);
}

// From the least that works to all of them, one slot at a time near the least.
TEST(StreamedExpertsSweep, EveryBudgetGivesTheSameBits) {
  const std::filesystem::path file = testing::converted_vectors("qwen3moe", "q8_0");
  std::vector<int32_t> ids = testing::expected_of("qwen3moe").ints("ids");
  ids.resize(40);
  LoadedModel mapped(file);
  const std::vector<float> want = mapped.logits(ids);
  const uint64_t least = least_budget(file);
  const uint64_t slot = least / static_cast<uint64_t>(mapped.model->config().ffn.n_used);
  uint64_t n_misses = UINT64_MAX;
  for (uint64_t n = 0, budget = least; n_misses > 0; ++n, budget += slot * (1 + n / 2)) {
    LoadedModel m(file, 2, best_isa(), streamed(budget));
    for (const int64_t window : {1, 8, 40}) {
      const std::vector<float> got = m.logits(ids, window);
      ASSERT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0)
          << "budget " << budget << ", window " << window;
    }
    ExpertCache& cache = *m.model->expert_cache();
    const uint64_t before = cache.stats().n_misses;
    (void)m.logits(ids, 1);
    n_misses = cache.stats().n_misses - before;
    EXPECT_LE(cache.stats().peak_bytes, budget);
    ASSERT_LT(n, 60u) << "all of them fit at last";
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
