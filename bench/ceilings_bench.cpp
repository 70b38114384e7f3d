// What can this machine do at best? Memory read bandwidth by threads, f32 and 8-bit multiply-adds on one
// core.
#include <vector>

#include <benchmark/benchmark.h>

#include "ceilings.h"
#include "core/cgroup.h"
#include "kernels/isa.h"

namespace forebay {
namespace {

/// Larger than any cache it is likely to meet.
constexpr size_t kReadBytes = size_t{1} << 30;

void BM_Read(benchmark::State& state) {
  static const std::vector<std::byte> bytes(kReadBytes, std::byte{1});
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(ceilings::read_all(pool, bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kReadBytes));
}
BENCHMARK(BM_Read)
    ->ArgName("threads")
    ->DenseRange(1, n_usable_cores())
    ->UseRealTime()
    ->Iterations(2)
    ->Repetitions(5);

void set_rate(benchmark::State& state, int64_t per_iteration) {
  state.counters["G multiply-adds/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * per_iteration) * 1e-9, benchmark::Counter::kIsRate);
}
constexpr int64_t kTurns = 100'000;

void BM_Fma(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ceilings::fma_chains(kTurns));
  set_rate(state, kTurns * 80);
}
void BM_Madd(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ceilings::madd_chains(kTurns));
  set_rate(state, kTurns * 8 * 32);
}
void BM_Vnni(benchmark::State& state) {
  if (!has_vnni()) return state.SkipWithError("this processor has no AVX-512 VNNI");
  for (auto _ : state) benchmark::DoNotOptimize(ceilings::vnni_chains(kTurns));
  set_rate(state, kTurns * 12 * 64);
}
BENCHMARK(BM_Fma);
BENCHMARK(BM_Madd);
BENCHMARK(BM_Vnni);

}  // namespace
}  // namespace forebay

BENCHMARK_MAIN();
