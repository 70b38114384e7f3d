#include "core/thread_pool.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "core/cgroup.h"

namespace forebay {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};

TEST_P(ThreadPoolTest, HasTheThreadsAskedFor) {
  EXPECT_EQ(pool_.n_threads(), GetParam());
}

TEST_P(ThreadPoolTest, RangesCoverEachIndexOnceAndKeepTheGrain) {
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 4096})
    for (const int64_t grain : {1, 2, 3, 8, 64, 5000}) {
      std::vector<std::atomic<int>> visits(n);
      std::atomic<bool> bad_range = false;
      pool_.parallel_for(n, grain, [&](int64_t begin, int64_t end, int thread) {
        const bool last = end == n;
        if (begin % grain != 0 || begin >= end || (end - begin < grain && !last)) bad_range = true;
        if (thread < 0 || thread >= pool_.n_threads()) bad_range = true;
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_FALSE(bad_range) << n << " by " << grain;
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(visits[i], 1) << i << " of " << n << " by " << grain;
    }
}

TEST_P(ThreadPoolTest, WorkIsVisibleToTheCallerAfterwards) {
  constexpr int64_t kN = 100'000;
  std::vector<int64_t> squares(kN);  // plain memory: a missing happens-before shows up under TSan
  for (int round = 0; round < 20; ++round) {
    pool_.parallel_for(kN, 100, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) squares[i] += i;
    });
    const int64_t sum = std::accumulate(squares.begin(), squares.end(), int64_t{0});
    ASSERT_EQ(sum, (round + 1) * (kN * (kN - 1) / 2));
  }
}

TEST_P(ThreadPoolTest, EachThreadIndexIsUsedByOneThreadAtATime) {
  std::vector<int64_t> per_thread(pool_.n_threads());  // unsynchronised on purpose, as per-thread scratch is
  for (int round = 0; round < 200; ++round)
    pool_.parallel_for(500, 1,
                       [&](int64_t begin, int64_t end, int thread) { per_thread[thread] += end - begin; });
  EXPECT_EQ(std::accumulate(per_thread.begin(), per_thread.end(), int64_t{0}), 200 * 500);
}

TEST_P(ThreadPoolTest, ManyTinyLoops) {
  std::vector<int> counts(16);
  constexpr int kLoops = 20'000;
  for (int loop = 0; loop < kLoops; ++loop)
    pool_.parallel_for(16, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) ++counts[i];
    });
  for (const int count : counts) ASSERT_EQ(count, kLoops);
}

TEST_P(ThreadPoolTest, SmallLoopRunsInlineAsOneRange) {
  const auto caller = std::this_thread::get_id();
  int n_calls = 0;
  pool_.parallel_for(32, 32, [&](int64_t begin, int64_t end, int thread) {
    ++n_calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 32);
    EXPECT_EQ(thread, 0);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_EQ(n_calls, 1);
}

TEST_P(ThreadPoolTest, WakesParkedWorkers) {
  // Far longer than a worker spins, so that each round starts with all of them asleep.
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> n_visited = 0;
    pool_.parallel_for(64, 1, [&](int64_t begin, int64_t end, int) {
      n_visited += static_cast<int>(end - begin);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    });
    ASSERT_EQ(n_visited, 64);
  }
}

TEST_P(ThreadPoolTest, AllThreadsTakePart) {
  std::mutex mutex;
  std::set<int> seen;
  // A caller that waits for the others inside the loop: it ends only if every thread gets a range.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto everyone_came = [&] {
    std::lock_guard lock(mutex);
    return static_cast<int>(seen.size()) == pool_.n_threads();
  };
  pool_.parallel_for(1000, 1, [&](int64_t, int64_t, int thread) {
    {
      std::lock_guard lock(mutex);
      seen.insert(thread);
    }
    while (!everyone_came() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(static_cast<int>(seen.size()), pool_.n_threads());
}

TEST_P(ThreadPoolTest, LoopsOfChangingSizeUnderStress) {
  std::vector<int64_t> cells(3000);
  std::vector<int64_t> expected(cells.size());
  uint64_t random = 12345;
  for (int loop = 0; loop < 3000; ++loop) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const auto n = static_cast<int64_t>((random >> 33) % cells.size());
    const auto grain = static_cast<int64_t>((random >> 20) % 40 + 1);
    pool_.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) cells[i] += loop;
    });
    for (int64_t i = 0; i < n; ++i) expected[i] += loop;
  }
  EXPECT_EQ(cells, expected);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 8));

TEST(ThreadPool, DefaultIsTheNumberOfUsableCores) {
  EXPECT_EQ(ThreadPool(0).n_threads(), n_usable_cores());
  EXPECT_GE(n_usable_cores(), 1);
  EXPECT_LE(n_usable_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(ThreadPool, CanBeMadeAndDroppedWithoutWork) {
  for (int i = 0; i < 100; ++i) ThreadPool pool(4);
}

TEST(ThreadPoolDeathTest, NestedLoopsAreABug) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto nested = [] {
    ThreadPool pool(2);
    pool.parallel_for(4, 1,
                      [&](int64_t, int64_t, int) { pool.parallel_for(4, 1, [](int64_t, int64_t, int) {}); });
  };
  EXPECT_DEATH(nested(), "parallel_for inside parallel_for");
  const auto nested_inline = [] {
    ThreadPool pool(1);
    pool.parallel_for(1, 1,
                      [&](int64_t, int64_t, int) { pool.parallel_for(1, 1, [](int64_t, int64_t, int) {}); });
  };
  EXPECT_DEATH(nested_inline(), "parallel_for inside parallel_for");
}

TEST(ThreadPoolPinning, StartedThreadsHaveACoreEach) {
  const int n = n_usable_cores();
  if (n < 2) GTEST_SKIP() << "one core";
  ThreadPool pool(n, /*pin=*/true);
  std::vector<int> n_cores(n, -1);
  std::atomic<int> inside = 0;
  pool.parallel_for(n, 1, [&](int64_t, int64_t, int thread) {
    // Until every thread has come: each gets one index.
    ++inside;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (inside < n && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    cpu_set_t set;
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    n_cores[thread] = CPU_COUNT(&set);
  });
  EXPECT_GE(n_cores[0], n) << "the caller's thread is left alone";
  for (int thread = 1; thread < n; ++thread) EXPECT_EQ(n_cores[thread], 1) << thread;
}

}  // namespace
}  // namespace forebay
