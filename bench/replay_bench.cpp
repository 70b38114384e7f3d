// How long do 120 cache configurations take over a trace of 48 blocks x 16,384 tokens, 10 of 512 experts
// each? The trace is synthetic, made and written once; loading it and replaying it are timed apart, on 1 and
// 2 threads.
#include <benchmark/benchmark.h>

#include "core/ensure.h"
#include "replay/replay.h"
#include "support/memory_storage.h"
#include "support/synthetic_routes.h"

namespace forebay {
namespace {

constexpr int kTokens = 16'384;
constexpr uint64_t kExpertBytes = 1'382'400;

/// The file's bytes, in memory.
MemoryStorage& storage() {
  static MemoryStorage* const files = [] {
    auto* made = new MemoryStorage;
    testing::SyntheticShape shape{.n_blocks = 48, .n_experts = 512, .n_used = 10};
    TraceHeader header{"synthetic", shape.n_experts, shape.n_used, {}, {}};
    header.expert_bytes.assign(shape.n_blocks, kExpertBytes);
    header.slot_bytes = header.expert_bytes;
    const std::unique_ptr<TraceWriter> writer = TraceWriter::create(*made, "trace", header).value();
    testing::SyntheticRoutes routes(shape);
    for (int t = 0; t < kTokens; ++t) routes.window(RoutePhase::kDecode, 1, *writer);
    ENSURE(writer->finish().has_value(), "the trace could not be written");
    return made;
  }();
  return *files;
}

void BM_Load(benchmark::State& state) {
  MemoryStorage& files = storage();
  uint64_t n_rows = 0;
  for (auto _ : state) n_rows = load_route_log(files, "trace").value().n_rows();
  state.counters["rows"] = static_cast<double>(n_rows);
  state.counters["bytes/row"] = static_cast<double>(files.get("trace").size()) / static_cast<double>(n_rows);
}
BENCHMARK(BM_Load)->Unit(benchmark::kSecond)->Iterations(1);

/// Six policies, five sizes, four biases.
void BM_Replay(benchmark::State& state) {
  const RouteLog log = load_route_log(storage(), "trace").value();
  ReplayGrid grid;
  grid.policies = {EvictionPolicy::kLru, EvictionPolicy::kDecay,    EvictionPolicy::kLfu,
                   EvictionPolicy::kEma, EvictionPolicy::kNearPick, EvictionPolicy::kInverse};
  for (const char* share : {"5%", "10%", "25%", "50%", "75%"})
    grid.budgets.push_back(parse_slots(log, share).value());
  grid.biases.clear();
  for (const float lambda : {0.0f, 0.3f, 0.6f, 0.9f}) grid.biases.push_back({lambda, 3, 16});
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const std::vector<ReplayRow> rows = replay(log, grid, {.warm_up_tokens = 512}, pool, nullptr, {}).value();
    state.counters["configurations"] = static_cast<double>(rows.size());
    state.counters["lru 25% hits"] = rows[2].hit_rate();
  }
}
BENCHMARK(BM_Replay)->ArgName("threads")->Arg(2)->UseRealTime()->Unit(benchmark::kSecond)->Iterations(1);

/// One configuration of each policy at a quarter of all experts, in turn.
void BM_Policy(benchmark::State& state) {
  static const RouteLog log = load_route_log(storage(), "trace").value();
  constexpr std::optional<EvictionPolicy> kPolicies[] = {
      EvictionPolicy::kLru,      EvictionPolicy::kDecay,   EvictionPolicy::kLfu, EvictionPolicy::kEma,
      EvictionPolicy::kNearPick, EvictionPolicy::kInverse, std::nullopt};
  const std::optional<EvictionPolicy> policy = kPolicies[state.range(0)];
  const RouteBias bias{static_cast<float>(state.range(1)) / 10, 3, 16};
  state.SetLabel(std::string(name_of(policy)));
  for (auto _ : state) {
    const ReplayCounts counts =
        simulate(log, {policy, parse_slots(log, "25%").value(), 2000, bias}, {}).counted;
    state.counters["misses/token"] =
        static_cast<double>(counts.n_misses) / static_cast<double>(counts.n_tokens);
  }
}
BENCHMARK(BM_Policy)
    ->ArgNames({"policy", "bias/10"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5, 6}, {0}})
    ->ArgsProduct({{1, 3}, {6}})
    ->Unit(benchmark::kSecond)
    ->Iterations(1);

}  // namespace
}  // namespace forebay

BENCHMARK_MAIN();
