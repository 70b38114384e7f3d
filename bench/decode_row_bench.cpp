// How many weights per nanosecond does each block format decode on one core, reference and AVX2?
// Rows of 4096 weights, block bytes and weights in the first-level cache: the ceiling of the decoders alone.
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/decode_row.h"
#include "quant/quant.h"

namespace forebay {
namespace {

constexpr int64_t kRowWeights = 4096;

void decode_rows(benchmark::State& state, DType type, Isa isa) {
  std::mt19937 random(1);
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(type, kRowWeights)));
  for (std::byte& b : blocks) b = static_cast<std::byte>((random() & 0x3b) | 4);  // scales are normal numbers
  std::vector<float> row(kRowWeights);
  const DecodeFn decode = find_decoder(type, isa);
  for (auto _ : state) {
    decode(blocks.data(), kRowWeights, row.data());
    benchmark::ClobberMemory();
  }
  const double n_weights = static_cast<double>(state.iterations()) * kRowWeights;
  state.counters["weights/ns"] = benchmark::Counter(n_weights * 1e-9, benchmark::Counter::kIsRate);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(blocks.size()));
}

void register_all() {
  for (uint32_t id = 0; id < 64; ++id) {
    const std::optional<DType> type = dtype_from_id(id);
    if (!type || find_codec(*type) == nullptr) continue;
    for (Isa isa : {Isa::kReference, best_isa()}) {
      if (isa != Isa::kReference && find_decoder(*type, isa) == find_codec(*type)->decode) continue;
      const std::string name = std::string(name_of(*type)) + "/" + std::string(name_of(isa));
      benchmark::RegisterBenchmark(name.c_str(),
                                   [type, isa](benchmark::State& state) { decode_rows(state, *type, isa); });
    }
  }
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  forebay::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
