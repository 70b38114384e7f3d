// What does a layer's routed set cost, one token at a time? Experts of a mixture much larger than any cache,
// a different set for each token. Arms in turn: reading the bytes of the routed experts and no more;
// expert_ffn with int8 activations; the same products one after the other (matmul, matmul, silu_mul, matmul
// for each expert); expert_ffn exact.
//   expert_bench [--types Q4_K,Q2_0] [--d 2048] [--f 768] [--experts 128] [--used 8] [--layers 4] [--tokens
//   1] [--threads 2]
//                [--rounds 9] [--processor-time]
#include <cstring>
#include <iostream>
#include <numeric>
#include <random>
#include <string>

#include <fmt/format.h>

#include "ceilings.h"
#include "kernels/activation.h"
#include "kernels/expert_ffn.h"
#include "kernels/matmul.h"
#include "paired.h"

namespace forebay {
namespace {

struct Options {
  std::vector<DType> types = {DType::kQ4_K, DType::kQ2_0, DType::kQ8_0, DType::kIQ2_XS};
  int64_t d = 2048, f = 768, experts = 128, used = 8, layers = 4, tokens = 1;
  int threads = 0, rounds = 9;
  paired::Clock clock = paired::Clock::kWall;
};

/// Each layer's experts behind one another: gate, up, down.
struct Mixture {
  Mixture(const Options& o, DType type)
      : o(o), type(type), down_type(o.f % info(type).block_weights == 0 ? type : DType::kQ8_0) {
    wide = o.f * row_bytes(type, o.d);
    narrow = o.d * row_bytes(down_type, o.f);
    bytes.resize(static_cast<size_t>(o.layers * o.experts * expert_bytes()));
    std::mt19937 random(1);
    constexpr size_t kPattern = 1 << 20;
    for (size_t i = 0; i < std::min(bytes.size(), kPattern); ++i)
      bytes[i] =
          static_cast<std::byte>((random() & 0x3b) | 4);  // every half-precision field an ordinary number
    for (size_t i = kPattern; i < bytes.size(); i += kPattern)
      std::memcpy(&bytes[i], bytes.data(), std::min(kPattern, bytes.size() - i));
  }
  int64_t expert_bytes() const { return 2 * wide + narrow; }
  std::span<const std::byte> expert(int64_t layer, int64_t e) const {
    return std::span(bytes).subspan(static_cast<size_t>((layer * o.experts + e) * expert_bytes()),
                                    static_cast<size_t>(expert_bytes()));
  }
  ExpertCall call(int64_t layer, int64_t e) const {
    const std::byte* b = expert(layer, e).data();
    return {{b, type, o.f, o.d, row_bytes(type, o.d)},
            {b + wide, type, o.f, o.d, row_bytes(type, o.d)},
            {b + 2 * wide, down_type, o.d, o.f, row_bytes(down_type, o.f)},
            {},
            {}};
  }

  const Options& o;
  DType type, down_type;
  int64_t wide = 0, narrow = 0;
  std::vector<std::byte> bytes;
};

void measure(const Options& o, DType type, ThreadPool& pool) {
  const Mixture m(o, type);
  // Routes of a token: `used` distinct experts in each layer; tokens of a window together.
  std::mt19937 random(3);
  const int64_t slots = o.tokens * o.used;
  struct Layer {
    std::vector<std::vector<int32_t>> rows, slots;
    std::vector<ExpertCall> calls;
  };
  std::vector<Layer> layers(static_cast<size_t>(o.layers));
  std::vector<int32_t> ids(static_cast<size_t>(o.experts));
  std::iota(ids.begin(), ids.end(), 0);
  const auto route = [&] {
    for (int64_t l = 0; l < o.layers; ++l) {
      Layer& layer = layers[static_cast<size_t>(l)];
      layer.rows.assign(static_cast<size_t>(o.experts), {});
      layer.slots = layer.rows;
      for (int64_t t = 0; t < o.tokens; ++t) {
        std::shuffle(ids.begin(), ids.end(), random);
        for (int64_t j = 0; j < o.used; ++j) {
          const auto e = static_cast<size_t>(ids[static_cast<size_t>(j)]);
          layer.rows[e].push_back(static_cast<int32_t>(t));
          layer.slots[e].push_back(static_cast<int32_t>(t * o.used + j));
        }
      }
      layer.calls.clear();
      for (size_t e = 0; e < layer.rows.size(); ++e) {
        if (layer.rows[e].empty()) continue;
        layer.calls.push_back(m.call(l, static_cast<int64_t>(e)));
        layer.calls.back().rows = layer.rows[e];
        layer.calls.back().slots = layer.slots[e];
      }
    }
  };

  std::vector<float> x(static_cast<size_t>(o.tokens * o.d)), hidden(static_cast<size_t>(slots * o.f)),
      up(hidden), y(static_cast<size_t>(slots * o.d));
  // Random bytes make large weights: inputs are small so that hidden rows are about 1, as in a model.
  std::normal_distribution<float> normal(0.0f, 1e-5f);
  for (float& v : x) v = normal(random);
  const TensorView<const float> x_TD{x.data(), o.tokens, o.d};
  const TensorView<float> hidden_SF{hidden.data(), slots, o.f}, up_SF{up.data(), slots, o.f},
      y_SD{y.data(), slots, o.d};
  KernelContext exact(pool, best_isa()), rounded(pool, best_isa());
  rounded.set_activations(Activations::kInt8);

  constexpr int kTokens = 8;  // windows in one arm's turn, each with routes of its own
  int64_t bytes_read = 0;
  const auto turn = [&](auto body) {
    return [&, body] {
      bytes_read = 0;
      random.seed(4);
      for (int i = 0; i < kTokens; ++i) {
        route();
        for (const Layer& layer : layers) {
          body(layer);
          bytes_read += static_cast<int64_t>(layer.calls.size()) * m.expert_bytes();
        }
      }
    };
  };
  const auto read = [&](const Layer& layer) {
    volatile uint64_t sink = 0;
    constexpr int64_t kPieces = 16;
    const int64_t piece = m.expert_bytes() / kPieces;
    pool.parallel_for(
        kPieces * static_cast<int64_t>(layer.calls.size()), 1, [&](int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i)
            sink = sink +
                   ceilings::read_piece(
                       layer.calls[static_cast<size_t>(i / kPieces)].gate.data + i % kPieces * piece, piece);
        });
  };
  const auto fused = [&](KernelContext& ctx) {
    return [&](const Layer& layer) { expert_ffn(ctx, layer.calls, x_TD, hidden_SF, up_SF, y_SD); };
  };
  const auto one_by_one = [&](const Layer& layer) {
    for (const ExpertCall& call : layer.calls)
      for (size_t i = 0; i < call.rows.size(); ++i) {
        const TensorView<float> gate = hidden_SF.slice_rows(call.slots[i], 1),
                                other = up_SF.slice_rows(call.slots[i], 1);
        matmul(rounded, call.gate, x_TD.slice_rows(call.rows[i], 1), gate);
        matmul(rounded, call.up, x_TD.slice_rows(call.rows[i], 1), other);
        silu_mul(rounded, gate, other, gate);
        matmul(rounded, call.down, gate, y_SD.slice_rows(call.slots[i], 1));
      }
  };
  const auto seconds = paired::run({turn(read), turn(fused(rounded)), turn(one_by_one), turn(fused(exact))},
                                   o.rounds, o.clock);
  const double at_once = o.clock == paired::Clock::kWall ? 1 : pool.n_threads();
  const auto gb = [&](size_t arm) {
    return static_cast<double>(bytes_read) / paired::median(seconds[arm]) * 1e-9 * at_once;
  };
  const paired::Ratio share = paired::ratio(seconds[0], seconds[1]),
                      fusion = paired::ratio(seconds[2], seconds[1]),
                      gain = paired::ratio(seconds[3], seconds[1]);
  fmt::print(
      "{:8} T={} {:6.1f} us a layer, {:6.2f} GB/s = {:.2f} [{:.2f}, {:.2f}] of reading; {:.2f} [{:.2f}, "
      "{:.2f}] times as fast as one by one, "
      "{:.2f} [{:.2f}, {:.2f}] times as fast as exact\n",
      name_of(type), o.tokens,
      paired::median(seconds[1]) / at_once / kTokens / static_cast<double>(o.layers) * 1e6, gb(1),
      share.median, share.low, share.high, fusion.median, fusion.low, fusion.high, gain.median, gain.low,
      gain.high);
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::Options o;
  bool good = true;
  for (int i = 1; i < argc && good; ++i) {
    const std::string flag = argv[i];
    if (flag == "--processor-time") {
      o.clock = forebay::paired::Clock::kProcessor;
      continue;
    }
    good = i + 1 < argc;
    if (!good) break;
    const std::string value = argv[++i];
    const int64_t number = std::atoll(value.c_str());
    if (flag == "--types")
      o.types = forebay::paired::types_from(value);
    else if (flag == "--d")
      o.d = number;
    else if (flag == "--f")
      o.f = number;
    else if (flag == "--experts")
      o.experts = number;
    else if (flag == "--used")
      o.used = number;
    else if (flag == "--layers")
      o.layers = number;
    else if (flag == "--tokens")
      o.tokens = number;
    else if (flag == "--threads")
      o.threads = static_cast<int>(number);
    else if (flag == "--rounds")
      o.rounds = static_cast<int>(number);
    else
      good = false;
  }
  if (!good) {
    std::cerr << "usage: expert_bench [--types Q4_K,Q2_0] [--d 2048] [--f 768] [--experts 128] [--used 8] "
                 "[--layers 4] "
                 "[--tokens 1] [--threads 2] [--rounds 9] [--processor-time]\n";
    return 2;
  }
  forebay::ThreadPool pool(o.threads);
  fmt::print("{} threads, {} of {} experts of {} x {} in each of {} layers\n", pool.n_threads(), o.used,
             o.experts, o.d, o.f, o.layers);
  for (const forebay::DType type : o.types) forebay::measure(o, type, pool);
}
