// Products with activations rounded to 8 bits: the integers mean what quant/ says, every version gives the
// bits of the definition, and those bits depend on nothing but the two rows.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "kernels/activation.h"
#include "kernels/expert_ffn.h"
#include "kernels/int8_dot.h"
#include "kernels/int8_formats.h"
#include "kernels/matmul.h"
#include "parity.h"
#include "quant/quant.h"

namespace forebay {
namespace {

using testing::Random;

constexpr DType kTypes[] = {DType::kQ4_0,    DType::kQ4_1,   DType::kQ5_0,   DType::kQ5_1,    DType::kQ8_0,
                            DType::kQ2_0,    DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K,    DType::kQ5_K,
                            DType::kQ6_K,    DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4,   DType::kNVFP4,
                            DType::kIQ2_XXS, DType::kIQ2_XS, DType::kIQ2_S,  DType::kIQ3_XXS, DType::kIQ3_S,
                            DType::kIQ1_S,   DType::kIQ1_M};

/// NaN equals NaN; everything else must have the same bits.
bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
void expect_same(const std::vector<float>& got, const std::vector<float>& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(same(got[i], wanted[i]))
        << what << ": element " << i << " is " << got[i] << ", wanted " << wanted[i];
}

/// Rows of random bytes: random scales too, subnormal, infinite and NaN halves among them. `tame` keeps every
/// half-precision field an ordinary number, wherever the format has it.
struct Weights {
  Weights(DType type, int64_t rows, int64_t cols, Random& random, bool tame, int64_t shift = 0)
      : bytes(static_cast<size_t>(rows * row_bytes(type, cols) + shift)),
        view{bytes.data() + shift, type, rows, cols, row_bytes(type, cols)} {
    for (std::byte& b : bytes) {
      const int64_t value = random.integer(0, 255);
      b = static_cast<std::byte>(tame ? (value & 0xbb) | 4 : value);
    }
  }
  Weights(Weights&&) = default;

  std::vector<std::byte> bytes;
  MatrixView view;
};

int64_t block_of(DType type) {
  return info(type).block_weights;
}

class Int8 : public ::testing::TestWithParam<DType> {
 protected:
  /// Every version that this machine has, over two threads.
  struct Version {
    std::string name;
    KernelContext ctx;
  };
  std::vector<Version> versions() {
    std::vector<Version> all;
    const auto add = [&](std::string name, Isa isa, bool vnni) {
      all.push_back({std::move(name), KernelContext(pool_, isa)});
      all.back().ctx.set_activations(Activations::kInt8);
      all.back().ctx.set_use_vnni(vnni);
    };
    add("reference", Isa::kReference, false);
    if (best_isa() != Isa::kReference) add(std::string(name_of(best_isa())), best_isa(), false);
    if (has_vnni()) add("vnni", best_isa(), true);
    return all;
  }
  ThreadPool pool_{2};
};

TEST_P(Int8, CodesTimesScalesAreTheWeights) {
  Random random(31);
  const DType type = GetParam();
  const Int8Format* format = find_int8_format(type);
  ASSERT_NE(format, nullptr);
  const int64_t n = 64 * block_of(type);
  const Weights w(type, 1, n, random, false);
  std::vector<float> wanted(static_cast<size_t>(n));
  decode_row(type, w.view.data, n, wanted.data());
  const auto* bytes = reinterpret_cast<const uint8_t*>(w.view.data);
  for (int64_t i = 0; i < n; i += 32) {
    WeightRun run;
    format->unpack(bytes + i / block_of(type) * info(type).block_bytes,
                   static_cast<int>(i % block_of(type) / 32), run);
    for (int k = 0; k < 32; ++k) {
      const int half = k / 16;
      float weight = run.scale[half] * static_cast<float>(run.code[k]);
      if (format->has_minima) weight += run.minimum[half];
      // A code of minus zero has no sign, and an infinite scale times 0 is a NaN that the decoders may not
      // see.
      if (weight == 0 || std::isinf(run.scale[half])) continue;
      ASSERT_TRUE(same(weight, wanted[static_cast<size_t>(i + k)]))
          << "weight " << i + k << " is " << weight << ", wanted " << wanted[static_cast<size_t>(i + k)];
    }
    EXPECT_TRUE(format->halves || same(run.scale[0], run.scale[1]));
  }
}

TEST_P(Int8, EveryVersionHasTheBitsOfTheDefinition) {
  Random random(32);
  const DType type = GetParam();
  for (const bool tame : {true, false})
    for (int64_t blocks : {1, 3, 5})
      for (int64_t N : {1, 9, 16, 35})
        for (int64_t T : {0, 1, 2, 3, 4, 5, 6, 7, 8, 17}) {
          const int64_t K = blocks * block_of(type);
          const Weights w(type, N, K, random, tame, blocks % 4);
          testing::Misaligned x(random.normal(T * K), 3);
          std::vector<float> wanted(static_cast<size_t>(T * N));
          for (Version& v : versions()) {
            std::vector<float> y(wanted.size());
            matmul(v.ctx, w.view, {x.data(), T, K}, {y.data(), T, N});
            if (v.name == "reference") wanted = y;
            expect_same(y, wanted, fmt::format("{} K={} N={} T={}", v.name, K, N, T));
          }
        }
}

TEST_P(Int8, NanAndLargeActivationsReachEveryOutput) {
  Random random(33);
  const DType type = GetParam();
  const int64_t K = 2 * block_of(type), N = 9, T = 5;
  const Weights w(type, N, K, random, true);
  std::vector<float> x = random.normal(T * K);
  x[static_cast<size_t>(1 * K + K - 1)] = NAN;
  x[static_cast<size_t>(2 * K)] = INFINITY;
  for (int64_t k = 0; k < K; ++k) x[static_cast<size_t>(3 * K + k)] *= 1e30f;
  for (int64_t k = 0; k < K; ++k) x[static_cast<size_t>(4 * K + k)] *= 1e-33f;
  std::vector<float> wanted;
  for (Version& v : versions()) {
    std::vector<float> y(static_cast<size_t>(T * N));
    matmul(v.ctx, w.view, {x.data(), T, K}, {y.data(), T, N});
    if (v.name == "reference") wanted = y;
    expect_same(y, wanted, v.name);
    for (int64_t n = 0; n < N; ++n) {
      EXPECT_TRUE(std::isnan(y[static_cast<size_t>(N + n)]) && std::isnan(y[static_cast<size_t>(2 * N + n)]))
          << v.name;
      EXPECT_TRUE(std::isfinite(y[static_cast<size_t>(n)])) << v.name;
      EXPECT_EQ(y[static_cast<size_t>(4 * N + n)], 0.0f) << v.name;
    }
  }
}

TEST_P(Int8, IsTheExactProductUpToRounding) {
  Random random(34);
  const DType type = GetParam();
  const int64_t K = 4 * block_of(type), N = 16;
  const Weights w(type, N, K, random, true);
  const std::vector<float> x = random.normal(K);
  std::vector<float> weights(static_cast<size_t>(K));
  Version v = std::move(versions().back());
  std::vector<float> y(static_cast<size_t>(N));
  matmul(v.ctx, w.view, {x.data(), 1, K}, {y.data(), 1, N});
  for (int64_t n = 0; n < N; ++n) {
    decode_row(type, w.view.row(n), K, weights.data());
    double exact = 0, bound = 0;
    for (int64_t j = 0; j < K; j += 32) {
      double largest = 0;
      for (int64_t k = j; k < j + 32; ++k) largest = std::max(largest, std::fabs(static_cast<double>(x[k])));
      for (int64_t k = j; k < j + 32; ++k) {
        exact += static_cast<double>(weights[k]) * x[k];
        // Half a step of the rounding, and the f32 sums: codes and minima may cancel, so count both.
        bound += std::fabs(weights[k]) * (largest / 254 + testing::kEps * 64 * largest) * 1.001;
      }
    }
    EXPECT_LE(std::fabs(y[n] - exact), bound) << "row " << n;
  }
}

TEST_P(Int8, BitsDoNotDependOnWindowThreadsOrCompany) {
  Random random(35);
  const DType type = GetParam();
  const int64_t K = 2 * block_of(type), N = 53, T = 13;
  const Weights a(type, N, K, random, true), b(DType::kQ8_0, 20, K, random, true);
  const std::vector<float> x = random.normal(T * K), other = random.normal(7 * K);
  ThreadPool one(1), three(3);
  for (Version& v : versions()) {
    KernelContext single(one, v.ctx.isa()), threaded(three, v.ctx.isa());
    for (KernelContext* ctx : {&single, &threaded}) {
      ctx->set_activations(Activations::kInt8);
      ctx->set_use_vnni(v.ctx.use_vnni());
    }
    std::vector<float> whole(T * N), again(T * N), whole_b(T * 20), again_b(T * 20), exact(T * 7),
        again_exact(T * 7);
    matmul(single, a.view, {x.data(), T, K}, {whole.data(), T, N});
    matmul(threaded, a.view, {x.data(), T, K}, {again.data(), T, N});
    expect_same(again, whole, v.name + " threads");
    for (int64_t window = 1; window <= 8; ++window) {
      for (int64_t t = 0; t < T; t += window) {
        const int64_t n = std::min(window, T - t);
        matmul(threaded, a.view, {x.data() + t * K, n, K}, {again.data() + t * N, n, N});
      }
      expect_same(again, whole, fmt::format("{} window {}", v.name, window));
    }
    // Three matrices in one call: this one, one of another format, one that reads f32.
    const MatrixView plain{reinterpret_cast<const std::byte*>(other.data()), DType::kF32, 7, K, K * 4};
    matmul(single, b.view, {x.data(), T, K}, {whole_b.data(), T, 20});
    matmul(single, plain, {x.data(), T, K}, {exact.data(), T, 7});
    const MatmulOutput outputs[] = {{a.view, {again.data(), T, N}},
                                    {plain, {again_exact.data(), T, 7}},
                                    {b.view, {again_b.data(), T, 20}}};
    matmul(threaded, outputs, {x.data(), T, K});
    expect_same(again, whole, v.name + " together");
    expect_same(again_b, whole_b, v.name + " together, second");
    expect_same(again_exact, exact, v.name + " together, f32");
  }
}

TEST_P(Int8, ExpertsAreMatmulSwigluMatmul) {
  Random random(36);
  const DType type = GetParam();
  // A routed pair and a narrower shared expert, as one set of calls; rows of each are picked.
  const int64_t D = 2 * std::max<int64_t>(block_of(type), 64), F = D / 2,
                narrow = std::max<int64_t>(block_of(type), 32);
  const int64_t T = 6;
  const std::vector<float> x = random.normal(T * D);
  struct Expert {
    Weights gate, up, down;
    std::vector<int32_t> rows, slots;
  };
  const auto expert = [&](int64_t width, DType down, std::vector<int32_t> rows, std::vector<int32_t> slots) {
    return Expert{Weights(type, width, D, random, true), Weights(type, width, D, random, true),
                  Weights(down, D, width, random, true), std::move(rows), std::move(slots)};
  };
  std::vector<Expert> experts;  // moved, never copied: views point into the bytes
  experts.push_back(expert(F, type, {0, 2, 5}, {0, 5, 9}));
  experts.push_back(expert(F, DType::kQ2_0, {3}, {7}));
  experts.push_back(expert(narrow, DType::kBF16, {0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 6, 8}));
  for (Version& v : versions()) {
    std::vector<ExpertCall> calls;
    for (const Expert& e : experts) calls.push_back({e.gate.view, e.up.view, e.down.view, e.rows, e.slots});
    std::vector<float> hidden(10 * F), scratch(10 * F), y(10 * D), wanted(10 * D);
    expert_ffn(v.ctx, calls, {x.data(), T, D}, {hidden.data(), 10, F}, {scratch.data(), 10, F},
               {y.data(), 10, D});
    for (const Expert& e : experts)
      for (size_t i = 0; i < e.rows.size(); ++i) {
        const int64_t width = e.gate.view.n_rows;
        std::vector<float> gate(width), up(width);
        const TensorView<const float> row{x.data() + e.rows[i] * D, 1, D};
        matmul(v.ctx, e.gate.view, row, {gate.data(), 1, width});
        matmul(v.ctx, e.up.view, row, {up.data(), 1, width});
        silu_mul(v.ctx, TensorView<const float>{gate.data(), 1, width},
                 TensorView<const float>{up.data(), 1, width}, {gate.data(), 1, width});
        matmul(v.ctx, e.down.view, {gate.data(), 1, width}, {wanted.data() + e.slots[i] * D, 1, D});
      }
    expect_same(y, wanted, v.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Int8, ::testing::ValuesIn(kTypes),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST(Int8Rows, EveryVersionRoundsAlike) {
  if (best_isa() == Isa::kReference) GTEST_SKIP() << "no fast instruction set on this machine";
  Random random(37);
  for (int64_t K : {32, 64, 96, 256, 640}) {
    testing::Misaligned x(random.normal(K), 1);
    for (int special = 0; special < 8; ++special) {
      const float values[] = {
          0.0f, NAN, -INFINITY, 1e-38f, 1e-31f, 3e38f, std::numeric_limits<float>::denorm_min(), 0.5f};
      if (special == 7)  // ties: steps of a half
        for (int64_t k = 0; k < K; ++k)
          x.data()[k] = k % 32 == 0 ? 127.0f : static_cast<float>(k % 23) - 11.5f;
      else
        x.data()[K - 1 - special] = values[special];
      Int8Rows a, b;
      a.resize(1, K);
      b.resize(1, K);
      round_to_int8(Isa::kReference, x.data(), 0, K, a.row(0));
      round_to_int8(best_isa(), x.data(), 0, K, b.row(0));
      const Int8Row wanted = a.row(0), got = b.row(0);
      EXPECT_EQ(std::memcmp(got.q, wanted.q, static_cast<size_t>(K)), 0);
      EXPECT_EQ(std::memcmp(got.planes, wanted.planes, static_cast<size_t>(K / 64 * 64)), 0);
      for (int64_t j = 0; j < K / 32; ++j) {
        EXPECT_TRUE(same(got.scale[j], wanted.scale[j])) << got.scale[j] << " " << wanted.scale[j];
        EXPECT_EQ(got.sum[j], wanted.sum[j]);
        EXPECT_TRUE(same(got.value_sum[j], wanted.value_sum[j]));
      }
      for (int64_t h = 0; h < K / 16; ++h) {
        EXPECT_EQ(got.half_sum[h], wanted.half_sum[h]);
        EXPECT_TRUE(same(got.half_value_sum[h], wanted.half_value_sum[h]));
      }
    }
  }
}

TEST(Int8Rows, RoundsToTheNearestStep) {
  std::vector<float> x(32);
  for (int k = 0; k < 32; ++k) x[static_cast<size_t>(k)] = static_cast<float>(k - 20);
  Int8Rows rows;
  rows.resize(1, 32);
  round_to_int8(Isa::kReference, x.data(), 0, 32, rows.row(0));
  const Int8Row row = rows.row(0);
  EXPECT_FLOAT_EQ(row.scale[0], 20.0f / 127);
  EXPECT_EQ(row.q[0], -127);
  EXPECT_EQ(row.q[20], 0);
  EXPECT_EQ(row.q[31], 70);  // 11 * 127 / 20 = 69.85
}

TEST(Int8Formats, NoneForTypesThatReadF32) {
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kTQ1_0, DType::kTQ2_0, DType::kQ1_0})
    EXPECT_EQ(find_int8_format(type), nullptr) << name_of(type);
  for (const DType type : kTypes) {
    EXPECT_NE(int8_detail::find_kernels_avx2(type), nullptr) << name_of(type);
    if (has_vnni()) {
      EXPECT_NE(int8_detail::find_kernels_vnni(type), nullptr) << name_of(type);
    }
  }
}

TEST(Int8Formats, ExactActivationsAreTheDefault) {
  ThreadPool pool(1);
  EXPECT_EQ(KernelContext(pool, best_isa()).activations(), Activations::kExact);
}

}  // namespace
}  // namespace forebay
