// Whole models on several threads, small enough for a thread sanitizer to watch in seconds: experts read
// while others compute, hints, reads that fail on their own thread, n-gram rows read ahead, states written
// and cancelled from elsewhere. Whatever the timing, the bits are those of one thread and mapped experts.
#include <atomic>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "../synth/small_models.h"
#include "core/faulty_storage.h"
#include "core/memory_budget.h"
#include "engine/batch.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using Logits = std::vector<float>;

constexpr int kThreads = 3;
// Of which the arena gets the rest, a fifth of all experts.
constexpr uint64_t kBudget = uint64_t{3584} << 10;

std::vector<int32_t> some_ids(int64_t n, int32_t from = 0) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((from + i * 131 + i * i % 89) % 400));
  return ids;
}

class EngineThreads : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    const auto storage = make_posix_storage();
    ThreadPool pool(kThreads);
    SynthOptions options = synth::small_options("qwen3.8-flash-next", "q8_0");
    options.geometry = synth::must(changed(options.geometry, {.n_experts = 24}));
    const SynthPlan plan = synth::must(plan_synthetic(options));
    ASSERT_OK(write_synthetic(*storage, *folder_ / "m.gguf", plan, pool, [](const SynthProgress&) {}, {}));
    EngineOptions o;
    o.model = (*folder_ / "m.gguf").string();
    o.context = 192;
    o.chunk = 32;
    o.threads = 1;
    o.experts = ExpertPlacement::kMapped;
    Engine mapped = Engine::open(o).value();
    exact_ = answer(mapped).value();
    o.threads = kThreads;
    o.experts = ExpertPlacement::kStreamed;
    o.budget_bytes = kBudget;
    queue_.emplace(Engine::open(o).value());
    o.read_engine = ReadEngine::kThreads;
    below_ = make_posix_storage();
    auto faults = std::make_unique<FaultyStorage>(*below_, FaultPlan{.op = StorageOp::kRead});
    faults_ = faults.get();
    threads_.emplace(Engine::open(o, std::move(faults), std::make_unique<MemoryBudget>()).value());
  }
  static void TearDownTestSuite() {
    queue_.reset();
    threads_.reset();
    folder_.reset();
  }

  /// A prompt, a rewind, a few tokens.
  static Result<Logits> answer(Engine& engine) {
    Session session = TRY(engine.new_session());
    const std::vector<int32_t> ids = some_ids(60);
    TRY(session.sync(std::span(ids).first(50)));
    TRY(session.rewind(44));
    for (const int32_t id : std::span(ids).subspan(50)) TRY(session.append(id));
    return Logits(session.logits().begin(), session.logits().end());
  }

  static std::unique_ptr<TemporaryDirectory> folder_;
  static Logits exact_;
  // Experts read by the kernel's queue, and by threads whose reads can be made to fail.
  static std::optional<Engine> queue_, threads_;
  static std::unique_ptr<Storage> below_;
  static FaultyStorage* faults_;
};
std::unique_ptr<TemporaryDirectory> EngineThreads::folder_;
Logits EngineThreads::exact_;
std::optional<Engine> EngineThreads::queue_, EngineThreads::threads_;
std::unique_ptr<Storage> EngineThreads::below_;
FaultyStorage* EngineThreads::faults_ = nullptr;

TEST_F(EngineThreads, StreamedExpertsGiveTheBitsOfOneThread) {
  for (Engine* engine : {&*queue_, &*threads_}) {
    for (int round = 0; round < 2; ++round) EXPECT_EQ(answer(*engine).value(), exact_) << round;
    const ExpertCacheStats stats = *engine->expert_stats();
    EXPECT_GT(stats.n_misses, 0u);
    EXPECT_GT(stats.n_prefetch_used, 0u);
    EXPECT_GT(stats.n_evictions, 0u);
    EXPECT_LE(stats.peak_bytes, stats.budget_bytes);
  }
}

TEST_F(EngineThreads, AReadThatFailsElsewhereIsThisRequestsError) {
  int n_errors = 0;
  for (int n = 1;; n *= 3) {
    faults_->arm(n);
    const Result<Logits> first = answer(*threads_);
    const int n_faults = faults_->n_faults();
    faults_->arm(0);
    if (n_faults == 0) break;
    if (!first) {
      ++n_errors;
      EXPECT_NE(first.error().message.find("injected fault"), std::string::npos) << first.error().message;
    }
    EXPECT_EQ(answer(*threads_).value(), exact_) << "after fault " << n;
  }
  EXPECT_GT(n_errors, 2);
}

TEST_F(EngineThreads, ConversationsInOneWindowAreCancelledFromElsewhere) {
  for (Engine* engine : {&*queue_, &*threads_}) {
    const std::vector<int32_t> long_prompt = some_ids(150, 7), ids = some_ids(50);
    std::stop_source stop;
    std::atomic<int64_t> seen = 0;
    std::thread canceller([&] {
      while (seen < 32) std::this_thread::yield();
      stop.request_stop();
    });
    Session cut = engine->new_session().value();
    const Result<SyncReport> report = cut.sync(
        long_prompt, [&](int64_t done, int64_t) { seen = done; }, stop.get_token());
    seen = 32;
    canceller.join();
    EXPECT_TRUE(report.has_value() || report.error().code == Code::kCancelled);
    Session a = engine->new_session().value(), b = engine->new_session().value();
    ASSERT_OK(a.sync(ids));
    ASSERT_OK(b.sync(std::span(ids).first(20)));
    for (int i = 20; i < 30; ++i) {
      const Feed feeds[] = {{.session = &a, .tokens = std::span(ids).subspan(i, 1)},
                            {.session = &b, .tokens = std::span(ids).subspan(i, 1)}};
      ASSERT_OK(feed(feeds));
    }
    Session alone = engine->new_session().value();
    ASSERT_OK(alone.sync(std::span(ids).first(30)));
    EXPECT_EQ(Logits(b.logits().begin(), b.logits().end()),
              Logits(alone.logits().begin(), alone.logits().end()));
  }
}

TEST_F(EngineThreads, TwoEnginesAtOnceShareNothing) {
  std::atomic<int> n_wrong = 0;
  std::vector<std::thread> threads;
  for (Engine* engine : {&*queue_, &*threads_})
    threads.emplace_back([&n_wrong, engine] {
      const Result<Logits> logits = answer(*engine);
      n_wrong += !logits || *logits != exact_;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_wrong, 0);
}

}  // namespace
}  // namespace forebay
