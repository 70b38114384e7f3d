// What does handing a loop to the pool cost, with workers still spinning and with workers asleep?
// One iteration is one parallel_for with a body that does next to nothing, so the time is the pool's own.
#include <chrono>

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
