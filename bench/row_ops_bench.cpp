// The kernels beside matrix products, at the sizes of a Flash-Next-shaped block and one token: what they move
// and compute a second on one thread, and which share of the two ceilings that is. Their data fit the
// second-level cache, so reading is measured there; other ceilings are in ceilings_bench.
#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "ceilings.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/block_codes.h"
#include "kernels/block_select.h"
#include "kernels/causal_conv.h"
#include "kernels/int8_rows.h"
#include "kernels/kv_rows.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/router.h"
#include "kernels/streams.h"
#include "sampling/weight.h"

namespace forebay {
namespace {

std::vector<float> numbers(int64_t n) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = normal(random);
  return v;
}

double rate_of(double amount, const std::function<void()>& run) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::max(best,
                    amount / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}
struct Ceilings {
  double bytes, flops;
};
const Ceilings& ceilings_here() {
  static const Ceilings measured = [] {
    const std::vector<std::byte> bytes(1 << 20);
    const auto n = static_cast<int64_t>(bytes.size());
    return Ceilings{
        rate_of(200.0 * static_cast<double>(n),
                [&] {
                  for (int i = 0; i < 200; ++i)
                    benchmark::DoNotOptimize(ceilings::read_piece(bytes.data(), n));
                }),
        rate_of(2.0 * 80 * 1e6, [] { benchmark::DoNotOptimize(ceilings::fma_chains(1'000'000)); })};
  }();
  return measured;
}

/// `bytes` and `flops` of one run; an exponential counts as the 18 operations that it is made of.
void add(const std::string& name, double bytes, double flops, std::function<void()> run) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const Ceilings& most = ceilings_here();
    for (auto _ : state) run();
    using benchmark::Counter;
    const auto n = static_cast<double>(state.iterations());
    state.counters["GB/s"] = Counter(bytes * n * 1e-9, Counter::kIsRate);
    state.counters["of_reading"] = Counter(bytes * n / most.bytes, Counter::kIsRate);
    state.counters["GFLOP/s"] = Counter(flops * n * 1e-9, Counter::kIsRate);
    state.counters["of_fma"] = Counter(flops * n / most.flops, Counter::kIsRate);
  });
}

/// Lives as long as the program: benchmarks keep references into it.
struct Data {
  static constexpr int64_t D = 2560, kStreams = 4, kHeadDim = 256, kHeads = 16, kKvHeads = 2, kCells = 512;
  static constexpr int64_t kKeys = 4096, kIndexDim = 64, kVocabulary = 151936, kExperts = 512;

  ThreadPool pool{1};
  KernelContext ctx{pool, best_isa()};
  std::vector<float> x = numbers(kStreams * D), gate = numbers(kStreams * D), y = numbers(kStreams * D);
  std::vector<float> q = numbers(kHeads * kHeadDim), attended = numbers(kHeads * kHeadDim);
  std::vector<float> history = numbers(3 * D), taps = numbers(4 * D);
  std::vector<float> pooled = numbers(kKeys * kIndexDim), index_q = numbers(4 * kIndexDim),
                     scores = numbers(kKeys), high = numbers(kKeys);
  std::vector<std::byte> tiles = std::vector<std::byte>(
      static_cast<size_t>(kKeys / BlockCodes::kTile * BlockCodes::tile_bytes(kIndexDim)));
  BlockCodes codes{.tiles = tiles.data(), .dim = kIndexDim};
  CodedQuery coded_q;
  std::vector<float> logits = numbers(kExperts), kv_row = numbers(kKvHeads * kHeadDim);
  std::vector<double> shifted = std::vector<double>(kVocabulary), weight = std::vector<double>(kVocabulary);
  std::vector<std::byte> key_bytes, value_bytes;
  std::vector<uint16_t> key_scales, value_scales;
  KvRows keys{{KvType::kInt8, kKvHeads, kHeadDim}}, values{{KvType::kInt8, kKvHeads, kHeadDim}};
  std::vector<CellRange> range{{0, kCells}};
  std::vector<std::span<const CellRange>> ranges{range};
  std::vector<uint32_t> scratch;
  std::vector<CellRange> chosen;
  RopeTable rope;
  Int8Rows rounded;

  Data() {
    for (size_t i = 0; i < shifted.size(); ++i) shifted[i] = -static_cast<double>(i % 40);
    const auto make = [](KvRows& rows, std::vector<std::byte>& bytes, std::vector<uint16_t>& scales) {
      bytes.resize(static_cast<size_t>(kCells * rows.value_bytes()));
      scales.resize(static_cast<size_t>(kCells * rows.n_scales()));
      rows.values = bytes.data();
      rows.scales = scales.data();
      const std::vector<float> x = numbers(kCells * rows.width());
      write_rows(best_isa(), rows, 0, {x.data(), kCells, rows.width()});
    };
    make(keys, key_bytes, key_scales);
    make(values, value_bytes, value_scales);
    const int64_t positions[] = {1000};
    rope.fill(positions, 64, 1e7);
    rounded.resize(1, D);
    encode_blocks(pooled.data(), 0, kKeys, codes);
    encode_query(index_q.data(), 4, kIndexDim, coded_q);
  }
};

void register_all() {
  static Data d;
  constexpr double D = Data::D, S = Data::kStreams;
  constexpr double kExp = 18;
  add("rms_norm", 3 * 4 * D, 4 * D, [] {
    rms_norm(d.ctx, {d.x.data(), 1, Data::D}, {d.gate.data(), Data::D}, 1e-6f, {d.y.data(), 1, Data::D});
  });
  add("silu_mul", 3 * 4 * D, (kExp + 4) * D, [] {
    silu_mul(d.ctx, TensorView<const float>{d.gate.data(), 1, Data::D},
             TensorView<const float>{d.x.data(), 1, Data::D}, {d.y.data(), 1, Data::D});
  });
  add("read_streams", 4 * (2 * S + 1) * D, (kExp + 4) * S * D, [] {
    read_streams(d.ctx, Data::kStreams, {d.gate.data(), 1, Data::kStreams * Data::D},
                 {d.x.data(), 1, Data::kStreams * Data::D}, {d.y.data(), 1, Data::D});
  });
  add("write_streams", 4 * (2 * S + 1) * D, 2 * S * D, [] {
    write_streams(d.ctx, Data::kStreams, {d.logits.data(), 1, Data::kStreams}, {d.gate.data(), 1, Data::D},
                  {d.y.data(), 1, Data::kStreams * Data::D});
  });
  add("causal_conv_silu", 4 * (4 + 4 + 1) * D, (2 * 4 + kExp + 3) * D, [] {
    causal_conv_silu(d.ctx, {d.x.data(), 1, Data::D}, {d.history.data(), 3, Data::D},
                     {d.taps.data(), 4, Data::D}, 1, {d.y.data(), 1, Data::D});
  });
  add("apply_rope", 2 * 4 * 64 * Data::kHeads, 6 * 32 * Data::kHeads, [] {
    apply_rope(d.ctx, d.rope, RopePairs::kHalves, Data::kHeads, Data::kHeadDim,
               {d.q.data(), 1, Data::kHeads * Data::kHeadDim});
  });
  add("round_to_int8", 4 * D + D + D, 3 * D,
      [] { round_to_int8(best_isa(), d.x.data(), 0, Data::D, d.rounded.row(0)); });
  add("write_kv_int8", 5.0 * Data::kKvHeads * Data::kHeadDim, 4.0 * Data::kKvHeads * Data::kHeadDim, [] {
    write_rows(best_isa(), d.keys, 7, {d.kv_row.data(), 1, Data::kKvHeads * Data::kHeadDim});
  });
  add("attend_512_cells_int8", 2.0 * Data::kCells * Data::kKvHeads * Data::kHeadDim,
      4.0 * Data::kCells * Data::kHeads * Data::kHeadDim, [] {
        attend(d.ctx, {Data::kHeads, Data::kKvHeads, Data::kHeadDim, 0.0625f},
               {d.q.data(), 1, Data::kHeads * Data::kHeadDim}, d.keys, d.values, d.ranges,
               {d.attended.data(), 1, Data::kHeads * Data::kHeadDim});
      });
  add("score_blocks_4096", 4.0 * Data::kKeys * Data::kIndexDim, 2.0 * 4 * Data::kKeys * Data::kIndexDim, [] {
    score_blocks(best_isa(), d.index_q.data(), 4, Data::kIndexDim, d.pooled.data(), Data::kKeys,
                 d.scores.data());
  });
  constexpr int64_t kTiles = Data::kKeys / BlockCodes::kTile;
  add("bound_scores_4096", static_cast<double>(kTiles * BlockCodes::tile_bytes(Data::kIndexDim)),
      2.0 * 4 * Data::kKeys * Data::kIndexDim, [] {
        bound_scores(best_isa(), has_vnni(), d.coded_q, d.codes, 0, kTiles, d.scores.data(), d.high.data());
      });
  add("encode_blocks_64", 5.0 * 64 * Data::kIndexDim, 8.0 * 64 * Data::kIndexDim,
      [] { encode_blocks(d.pooled.data(), 0, 64, d.codes); });
  add("select_blocks_4096", 4.0 * 4 * Data::kKeys, 0,
      [] { select_blocks(best_isa(), d.scores, 512, 4, 4 * Data::kKeys, d.scratch, d.chosen); });
  add("route_top_10_of_512", 4.0 * Data::kExperts, Data::kExperts, [] {
    int32_t ids[10];
    float weights[10];
    route_top_k(d.logits, 10, ids, weights);
    benchmark::DoNotOptimize(ids);
  });
  add("sampler_weights_151936", 2.0 * 8 * Data::kVocabulary, 45.0 * Data::kVocabulary,
      [] { weights(d.shifted.data(), d.shifted.size(), d.weight.data()); });
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  forebay::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
