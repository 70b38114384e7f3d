// What does handing a loop to the pool cost, with workers still spinning and with workers asleep? There, one
// iteration is one parallel_for with a body that does next to nothing, so the time is the pool's own.
// And what is left of its speed while others use the cores? BM_Competing runs loops of a fixed amount of work
// beside busy threads of other programs; their fair share is what n threads beside m get of the cores.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/cgroup.h"
#include "core/thread_pool.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

void busy_wait(std::chrono::microseconds duration) {
  for (const auto end = Clock::now() + duration; Clock::now() < end;) {
  }
}

/// Arguments: threads, microseconds of other work before each loop.
void BM_Dispatch(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  const std::chrono::microseconds gap(state.range(1));
  for (auto _ : state) {
    busy_wait(gap);
    const auto start = Clock::now();
    pool.parallel_for(64, 1, [](int64_t begin, int64_t, int) { benchmark::DoNotOptimize(begin); });
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

/// Arguments: threads, busy threads beside them, microseconds of work in a loop, pinned. Fair: the rate
/// beside them over the rate alone, if the system gave every thread as much.
void BM_Competing(benchmark::State& state) {
  const auto n_threads = static_cast<int>(state.range(0)), n_others = static_cast<int>(state.range(1));
  const auto work = std::chrono::microseconds(state.range(2));
  ThreadPool pool(n_threads, state.range(3) != 0);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < n_others; ++i)
    others.emplace_back([&] {
      while (!stop) benchmark::ClobberMemory();
    });
  // Counted in steps, not in time: a thread that is not running must not have worked.
  static const int64_t steps_per_us = [] {
    const auto start = Clock::now();
    int64_t n = 0;
    for (; Clock::now() - start < std::chrono::milliseconds(20); ++n)
      for (int i = 0; i < 1000; ++i) benchmark::DoNotOptimize(i);
    return std::max<int64_t>(1, n * 1000 / 20000);
  }();
  constexpr int64_t kPieces = 64;
  const int64_t per_piece = steps_per_us * work.count() / kPieces;
  int64_t n_loops = 0;
  for (auto _ : state) {
    pool.parallel_for(kPieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = 0; i < (end - begin) * per_piece; ++i) benchmark::DoNotOptimize(i);
    });
    ++n_loops;
  }
  state.counters["loops/s"] = benchmark::Counter(static_cast<double>(n_loops), benchmark::Counter::kIsRate);
  const double cores = n_usable_cores(), all = n_threads + n_others;
  state.counters["fair"] = std::min(1.0, cores / all * n_threads / std::min<double>(n_threads, cores));
  stop = true;
  for (std::thread& other : others) other.join();
}

void competing(benchmark::internal::Benchmark* bench) {
  const int cores = n_usable_cores();
  for (const int work_us : {20, 100, 1000})
    for (const int pinned : {0, 1})
      for (int others = 0; others <= cores; others += std::max(1, cores / 2))
        bench->Args({cores, others, work_us, pinned});
}

BENCHMARK(BM_Competing)
    ->ArgNames({"threads", "others", "work_us", "pinned"})
    ->Apply(competing)
    ->UseRealTime()
    ->MinTime(0.5);

void threads_and_gaps(benchmark::internal::Benchmark* bench) {
  for (int threads = 1; threads <= 2 * n_usable_cores(); threads *= 2)
    for (const int gap_us : {0, 10, 1000}) bench->Args({threads, gap_us});
}

BENCHMARK(BM_Dispatch)
    ->ArgNames({"threads", "gap_us"})
    ->Apply(threads_and_gaps)
    ->UseManualTime()
    ->Iterations(500)
    ->Repetitions(3)
    ->ReportAggregatesOnly();

}  // namespace
}  // namespace forebay

BENCHMARK_MAIN();
