// The scheduler's threads, with a tiny random model that has every kind of state and no HTTP: what a thread
// sanitizer can watch in a few seconds.
#include "server/scheduler.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "../synth/small_models.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using Ids = std::vector<int32_t>;

class Schedulers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    const auto storage = make_posix_storage();
    ThreadPool pool(2);
    const SynthPlan plan = synth::must(plan_synthetic(synth::small_options("qwen3.8-flash-next", "q8_0")));
    ASSERT_OK(write_synthetic(*storage, *folder_ / "m.gguf", plan, pool, [](const SynthProgress&) {}, {}));
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static EngineOptions options() {
    EngineOptions o;
    o.model = (*folder_ / "m.gguf").string();
    o.context = 192;
    o.chunk = 32;
    o.threads = 2;
    return o;
  }
  static Engine open(const EngineOptions& o = options()) {
    Result<Engine> engine = Engine::open(o);
    EXPECT_OK(engine);
    return std::move(engine).value();
  }
  static std::unique_ptr<TemporaryDirectory> folder_;
};
std::unique_ptr<TemporaryDirectory> Schedulers::folder_;

constexpr int kQuestions = 6;

/// Beginnings are shared, ends are not.
Job question(int i, uint64_t seed = 0) {
  Job job;
  for (int k = 0; k < 40 + 9 * (i % 4); ++k)
    job.prompt.push_back(300 + (k * 7 + (k > 30 ? 13 * i : 0)) % 150);
  job.options.max_tokens = 6 + i;
  job.options.ignore_stop_tokens = true;
  job.options.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
  job.options.sampling.seed = 10 * static_cast<uint64_t>(i) + seed;
  job.client = std::to_string(i % 3);
  return job;
}

struct Answer {
  Ids ids;
  std::optional<Result<AnswerEnd>> end;
};
Answer wait_for(Ticket& ticket) {
  Answer answer;
  while (!answer.end) {
    Ticket::Update update = ticket.wait(milliseconds(20));
    for (const AnswerToken& token : update.tokens)
      if (token.id >= 0) answer.ids.push_back(token.id);
    answer.end = std::move(update.end);
  }
  return answer;
}

TEST_F(Schedulers, ManyThreadsAskCancelAndLookAndEveryAnswerIsItsSoloAnswer) {
  std::map<std::pair<int, uint64_t>, Ids> want;
  {
    Engine engine = open();
    const auto alone = Scheduler::start(engine, {.n_slots = 1}).value();
    for (int i = 0; i < kQuestions; ++i)
      for (uint64_t seed : {0, 1, 2})
        want[{i, seed}] = wait_for(*alone->submit(question(i, seed)).value()).ids;
  }
  const TemporaryDirectory cache;
  EngineOptions o = options();
  o.cache_dir = cache.path().string();
  Engine engine = open(o);
  const auto scheduler = Scheduler::start(engine, {.n_slots = 3, .prompt_share = 16}).value();
  std::atomic<int> n_wrong = 0, n_cancelled = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int round = 0; round < 8; ++round) {
        const int i = static_cast<int>(random() % kQuestions);
        // Three choices of one prompt, of which one may be given up at any time.
        std::vector<std::shared_ptr<Ticket>> tickets;
        for (uint64_t seed : {0, 1, 2}) {
          Job job = question(i, seed);
          if (!tickets.empty()) job.after = tickets[0];
          tickets.push_back(scheduler->submit(std::move(job)).value());
        }
        const size_t leaves = random() % 6;
        if (leaves < tickets.size()) {
          std::this_thread::sleep_for(milliseconds(random() % 4));
          tickets[leaves]->cancel();
        }
        for (uint64_t seed : {0, 1, 2}) {
          const Answer answer = wait_for(*tickets[seed]);
          const bool cut = !*answer.end || (*answer.end)->report.reason == FinishReason::kCancelled;
          if (cut && seed != leaves) ++n_wrong;
          if (cut) ++n_cancelled;
          const Ids& all = want[{i, seed}];
          if (cut ? answer.ids.size() > all.size() ||
                        !std::equal(answer.ids.begin(), answer.ids.end(), all.begin())
                  : answer.ids != all)
            ++n_wrong;
        }
      }
    });
  threads.emplace_back([&] {
    while (!over) {
      const SchedulerStatus status = scheduler->status();
      if (status.slots.size() > 3) ++n_wrong;
      (void)scheduler->run(
          [](std::span<const std::unique_ptr<Slot>> slots) -> Result<void> {
            for (const auto& slot : slots) (void)slot->session.tokens().size();
            return {};
          },
          milliseconds(5));
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  for (size_t t = 0; t + 1 < threads.size(); ++t) threads[t].join();
  over = true;
  threads.back().join();
  EXPECT_EQ(n_wrong, 0);
  scheduler->stop(milliseconds(0));
  const SchedulerStatus last = scheduler->status();
  EXPECT_EQ(last.stats.n_submitted, 4 * 8 * 3);
  EXPECT_EQ(last.stats.n_finished + last.stats.n_cancelled, last.stats.n_submitted);
  EXPECT_EQ(last.stats.n_cancelled, n_cancelled);
  EXPECT_GE(last.stats.n_prompt, last.stats.n_reused + last.stats.n_prefilled) << "less what was cancelled";
}

TEST_F(Schedulers, StoppingWhileOthersAsk) {
  Engine engine = open();
  for (int round = 0; round < 4; ++round) {
    std::atomic<int> n_cut_off = 0;
    SchedulerOptions options;
    options.n_slots = 2;
    options.on_cut_off = [&](size_t, const Session& session) { n_cut_off += !session.tokens().empty(); };
    const auto scheduler = Scheduler::start(engine, options).value();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        while (true) {
          Job job = question(t);
          job.options.max_tokens = 100;
          const Result<std::shared_ptr<Ticket>> ticket = scheduler->submit(std::move(job));
          if (!ticket) {
            EXPECT_EQ(ticket.error().code, Code::kCancelled);
            return;
          }
          (void)wait_for(**ticket);
        }
      });
    std::this_thread::sleep_for(milliseconds(10 + 10 * round));
    scheduler->stop(milliseconds(round % 2 == 0 ? 0 : 5));
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(n_cut_off, 2);
    EXPECT_FALSE(scheduler->run([](auto) { return Result<void>(); }).has_value());
  }
}

TEST_F(Schedulers, AFullQueueSaysSo) {
  Engine engine = open();
  std::atomic<bool> held = true;
  SchedulerOptions options;
  options.n_slots = 1;
  options.max_queued = 2;
  options.before_step = [&] {
    while (held) std::this_thread::sleep_for(milliseconds(1));
  };
  const auto scheduler = Scheduler::start(engine, options).value();
  std::vector<std::shared_ptr<Ticket>> tickets = {scheduler->submit(question(0)).value()};
  while (scheduler->status().n_queued > 0) std::this_thread::sleep_for(milliseconds(1));
  for (int i : {1, 2}) tickets.push_back(scheduler->submit(question(i)).value());
  EXPECT_TRUE(fails_with(scheduler->submit(question(3)), Code::kOutOfMemory, "2 requests wait already"));
  held = false;
  for (const auto& ticket : tickets) EXPECT_OK(*wait_for(*ticket).end);
}

/// Seconds that an answer, a task and the end took, of a scheduler that had been asleep before each.
std::array<double, 3> wait_for_each(Engine& engine, SchedulerOptions options) {
  const auto scheduler = Scheduler::start(engine, options).value();
  const auto seconds = [](auto body) {
    std::this_thread::sleep_for(milliseconds(30));  // until it sleeps
    const auto began = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  return {seconds([&] { EXPECT_OK(*wait_for(*scheduler->submit(question(0)).value()).end); }),
          seconds([&] { EXPECT_OK(scheduler->run([](auto) { return Result<void>(); })); }),
          seconds([&] { scheduler->stop(milliseconds(0)); })};
}

// Case 67: whoever brings work says so. A notification that is missing shows as a sleep of 20 s.
TEST_F(Schedulers, WorkWakesTheThread) {
  Engine engine = open();
  for (double took : wait_for_each(engine, {.n_slots = 1, .longest_sleep = std::chrono::seconds(20)}))
    EXPECT_LT(took, 10);
}

TEST_F(Schedulers, ALostWakeUpCostsNoMoreThanTheLongestSleep) {
  Engine engine = open();
  SchedulerOptions options;
  options.n_slots = 1;
  options.longest_sleep = milliseconds(300);
  options.lose_wake_ups = true;
  double all = 0;
  for (double took : wait_for_each(engine, options)) {
    all += took;
    EXPECT_LT(took, 5);
  }
  EXPECT_GT(all, 0.3) << "the wake-ups were not lost";
}

TEST(Tickets, NewsWakeWhoWaits) {
  constexpr milliseconds kLong = std::chrono::seconds(20);
  Ticket ticket{Job()};
  const auto began = std::chrono::steady_clock::now();
  std::thread engine([&] {
    std::this_thread::sleep_for(milliseconds(30));
    ticket.push(AnswerToken());
    std::this_thread::sleep_for(milliseconds(30));
    ticket.finish(Error{Code::kCancelled, "the test is over"});
  });
  EXPECT_EQ(ticket.wait(kLong).tokens.size(), 1u);
  EXPECT_TRUE(ticket.wait(kLong).end.has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong / 2);
  engine.join();
}

}  // namespace
}  // namespace forebay
