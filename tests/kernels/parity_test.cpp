// Every fast kernel against its reference: odd sizes, size 1, misaligned starts, NaN, large values.
#include "parity.h"

#include <cstring>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/block_select.h"
#include "kernels/causal_conv.h"
#include "kernels/gated_delta.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/streams.h"
#include "kv_memory.h"
#include "quant/quant.h"

namespace forebay {
namespace {

using testing::expect_close;
using testing::kEps;
using testing::Misaligned;
using testing::Random;
using testing::uniform_bound;

constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8};

class Parity : public ::testing::Test {
 protected:
  void SetUp() override {
    if (best_isa() == Isa::kReference) GTEST_SKIP() << "no fast instruction set on this machine";
  }
  ThreadPool pool{2};
  KernelContext reference{pool, Isa::kReference};
  KernelContext fast{pool, best_isa()};
};

std::vector<std::byte> encoded(DType type, const std::vector<float>& w) {
  std::vector<std::byte> out(row_bytes(type, static_cast<int64_t>(w.size())));
  const Result<void> done = encode_row(type, w, out.data());
  EXPECT_TRUE(done.has_value());
  return out;
}

TEST_F(Parity, MatmulOfEveryWrittenType) {
  Random random(11);
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K,
                     DType::kQ6_K, DType::kIQ4_NL, DType::kQ2_0, DType::kMXFP4}) {
    const int64_t block = info(type).block_weights;
    for (int64_t K : {block, 2 * block, 5 * block})
      for (int64_t N : {int64_t{1}, int64_t{7}, int64_t{21}})
        for (int64_t T : {0, 1, 2, 3, 8}) {
          const std::vector<float> w = random.normal(N * K);
          const std::vector<std::byte> bytes = encoded(type, w);
          std::vector<float> decoded(N * K);
          decode_row(type, bytes.data(), N * K, decoded.data());
          const MatrixView view{bytes.data(), type, N, K, row_bytes(type, K)};
          Misaligned x(random.normal(T * K), 3);
          std::vector<float> a(T * N), b(T * N);
          matmul(reference, view, {x.data(), T, K}, {a.data(), T, N});
          matmul(fast, view, {x.data(), T, K}, {b.data(), T, N});
          // Rounding of a sum of K products: eps * K * sum |w x| is never exceeded; eps * sqrt(K) * |w||x| is
          // typical.
          std::vector<double> bound(T * N);
          for (int64_t t = 0; t < T; ++t)
            for (int64_t n = 0; n < N; ++n) {
              double magnitude = 0;
              for (int64_t k = 0; k < K; ++k)
                magnitude += std::fabs(decoded[n * K + k] * x.data()[t * K + k]);
              bound[t * N + n] = kEps * (8 + static_cast<double>(K) / 8) * magnitude;
            }
          expect_close(a, b, bound, std::string(name_of(type)).c_str());
        }
  }
}

TEST_F(Parity, MatmulCarriesNanAndLargeValues) {
  const int64_t K = 35;
  std::vector<float> w(2 * K, 1e18f), x(K, 1e19f);
  w[K + 34] = NAN;
  const MatrixView view{reinterpret_cast<const std::byte*>(w.data()), DType::kF32, 2, K, K * 4};
  std::vector<float> a(2), b(2);
  matmul(reference, view, {x.data(), 1, K}, {a.data(), 1, 2});
  matmul(fast, view, {x.data(), 1, K}, {b.data(), 1, 2});
  EXPECT_FLOAT_EQ(a[0], b[0]);
  EXPECT_TRUE(std::isnan(a[1]) && std::isnan(b[1]));
}

TEST_F(Parity, RmsAndL2Norm) {
  Random random(12);
  for (int64_t W : {1, 5, 8, 33, 320}) {
    Misaligned x(random.normal(6 * W, 3.0f), 1);
    const std::vector<float> weight = random.normal(3 * W);
    std::vector<float> a(6 * W), b(6 * W);
    rms_norm(reference, {x.data(), 6, W}, weight, 1e-6f, {a.data(), 6, W});
    rms_norm(fast, {x.data(), 6, W}, weight, 1e-6f, {b.data(), 6, W});
    expect_close(a, b, uniform_bound(a.size(), kEps * 8 * std::sqrt(static_cast<double>(W)) * 16),
                 "rms_norm");
    l2_norm(reference, {x.data(), 6, W}, 1e-6f, 0.25f, {a.data(), 6, W});
    l2_norm(fast, {x.data(), 6, W}, 1e-6f, 0.25f, {b.data(), 6, W});
    expect_close(a, b, uniform_bound(a.size(), kEps * 8), "l2_norm");
  }
}

TEST_F(Parity, Activations) {
  Random random(13);
  for (int64_t n : {1, 7, 8, 9, 67}) {
    std::vector<float> gate = random.normal(n, 8.0f), up = random.normal(n);
    gate[0] = 200.0f;
    if (n > 2) gate[1] = -200.0f;
    if (n > 7) gate[7] = NAN;
    std::vector<double> bound(n);
    for (int64_t i = 0; i < n; ++i) bound[i] = kEps * 8 * (std::fabs(gate[i]) + 1) * (std::fabs(up[i]) + 1);
    std::vector<float> a(n), b(n);
    silu_mul(reference, {gate.data(), 1, n}, {up.data(), 1, n}, {a.data(), 1, n});
    silu_mul(fast, {gate.data(), 1, n}, {up.data(), 1, n}, {b.data(), 1, n});
    expect_close(a, b, bound, "silu_mul");
    sigmoid_mul(reference, {up.data(), 1, n}, {gate.data(), 1, n}, {a.data(), 1, n});
    sigmoid_mul(fast, {up.data(), 1, n}, {gate.data(), 1, n}, {b.data(), 1, n});
    expect_close(a, b, bound, "sigmoid_mul");
    a = b = gate;
    silu_scaled(reference, 0.25f, {a.data(), 1, n});
    silu_scaled(fast, 0.25f, {b.data(), 1, n});
    expect_close(a, b, bound, "silu_scaled");
  }
}

TEST_F(Parity, ReadStreams) {
  Random random(14);
  for (int64_t D : {1, 9, 64}) {
    const std::vector<float> gate = random.normal(2 * 4 * D, 3.0f), normed = random.normal(2 * 4 * D);
    std::vector<float> a(2 * D), b(2 * D);
    read_streams(reference, 4, {gate.data(), 2, 4 * D}, {normed.data(), 2, 4 * D}, {a.data(), 2, D});
    read_streams(fast, 4, {gate.data(), 2, 4 * D}, {normed.data(), 2, 4 * D}, {b.data(), 2, D});
    expect_close(a, b, uniform_bound(a.size(), kEps * 32), "read_streams");
  }
}

TEST_F(Parity, CausalConvolutionWithAndWithoutDilation) {
  Random random(15);
  for (int dilation : {1, 3})
    for (int64_t C : {1, 8, 13})
      for (int64_t T : {1, 2, 11}) {
        const int64_t R = dilation * 3;
        const std::vector<float> u = random.normal(T * C), history = random.normal(R * C),
                                 w = random.normal(4 * C);
        std::vector<float> a(T * C), b(T * C);
        causal_conv_silu(reference, {u.data(), T, C}, {history.data(), R, C}, {w.data(), 4, C}, dilation,
                         {a.data(), T, C});
        causal_conv_silu(fast, {u.data(), T, C}, {history.data(), R, C}, {w.data(), 4, C}, dilation,
                         {b.data(), T, C});
        expect_close(a, b, uniform_bound(a.size(), kEps * 64), "causal_conv");
      }
}

TEST_F(Parity, GatedDeltaRule) {
  Random random(16);
  for (HeadPairing pairing : {HeadPairing::kTiled, HeadPairing::kGrouped})
    for (int v_dim : {5, 32, 40}) {
      const GatedDeltaShape shape{2, 6, 24, v_dim, pairing};
      const int64_t T = 9, kw = 2 * 24, vw = 6 * v_dim;
      std::vector<float> q = random.normal(T * kw, 0.2f), k = random.normal(T * kw, 0.2f),
                         v = random.normal(T * vw);
      std::vector<float> decay(T * 6), beta(T * 6);
      for (float& d : decay) d = static_cast<float>(random.integer(50, 100)) / 100.0f;
      for (float& b : beta) b = static_cast<float>(random.integer(0, 100)) / 100.0f;
      std::vector<float> state = random.normal(6 * 24 * v_dim), state2 = state;
      std::vector<float> a(T * vw), b(T * vw);
      gated_delta_rule(reference, shape, {q.data(), T, kw}, {k.data(), T, kw}, {v.data(), T, vw},
                       {decay.data(), T, 6}, {beta.data(), T, 6}, state.data(), {a.data(), T, vw});
      gated_delta_rule(fast, shape, {q.data(), T, kw}, {k.data(), T, kw}, {v.data(), T, vw},
                       {decay.data(), T, 6}, {beta.data(), T, 6}, state2.data(), {b.data(), T, vw});
      expect_close(a, b, uniform_bound(a.size(), kEps * 24 * 16), "gated_delta out");
      expect_close(state, state2, uniform_bound(state.size(), kEps * 24 * 16), "gated_delta state");
    }
}

TEST_F(Parity, AttentionOverRanges) {
  Random random(17);
  for (int dim : {4, 32, 44, 72}) {
    const AttentionShape shape{6, 2, dim, 1.0f / std::sqrt(static_cast<float>(dim))};
    const int64_t cells = 37, T = 3;
    const std::vector<float> q = random.normal(T * 6 * dim), k = random.normal(cells * 2 * dim),
                             v = random.normal(cells * 2 * dim);
    const std::vector<std::vector<CellRange>> lists{{{0, 1}}, {{0, 35}}, {{4, 8}, {16, 20}, {32, 37}}};
    const std::vector<std::span<const CellRange>> ranges(lists.begin(), lists.end());
    for (KvType type : kKvTypes) {
      testing::KvMemory keys(type, 2, dim, k), values(type, 2, dim, v);
      std::vector<float> a(q.size()), b(q.size());
      attend(reference, shape, {q.data(), T, 6 * dim}, keys.rows, values.rows, ranges,
             {a.data(), T, 6 * dim});
      attend(fast, shape, {q.data(), T, 6 * dim}, keys.rows, values.rows, ranges, {b.data(), T, 6 * dim});
      expect_close(a, b, uniform_bound(a.size(), kEps * 128), "attend");
    }
  }
}

TEST_F(Parity, AttentionSurvivesLargeScores) {
  const AttentionShape shape{1, 1, 8, 1.0f};
  const std::vector<float> q(8, 1e6f), k(3 * 8, 1e6f), v = Random(18).normal(3 * 8);
  const std::vector<CellRange> list{{0, 3}};
  const std::vector<std::span<const CellRange>> ranges{list};
  std::vector<float> a(8), b(8);
  testing::KvMemory keys(KvType::kF32, 1, 8, k), values(KvType::kF32, 1, 8, v);
  attend(reference, shape, {q.data(), 1, 8}, keys.rows, values.rows, ranges, {a.data(), 1, 8});
  attend(fast, shape, {q.data(), 1, 8}, keys.rows, values.rows, ranges, {b.data(), 1, 8});
  expect_close(a, b, uniform_bound(8, kEps * 16), "attend");
}

/// A value that is not finite reaches the same outputs as in the reference, from any address.
TEST_F(Parity, WhatIsNotFiniteGoesWhereTheReferenceTakesIt) {
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (int64_t W : {1, 7, 8, 33}) {
      Random random(23);
      const int64_t T = 5;
      std::vector<float> values = random.normal(T * W, 1e3f);
      values[2 * W + W / 2] = bad;
      Misaligned x(values, 1), gate(random.normal(T * W), 3);
      const std::vector<float> weight = random.normal(W);
      std::vector<float> a(T * W), b(T * W);
      const auto close = [&](const char* what) {
        expect_close(a, b, uniform_bound(a.size(), kEps * 1e6 * (1 + static_cast<double>(W))), what);
      };
      rms_norm(reference, {x.data(), T, W}, weight, 1e-6f, {a.data(), T, W});
      rms_norm(fast, {x.data(), T, W}, weight, 1e-6f, {b.data(), T, W});
      for (int64_t i = 0; i < W; ++i)
        EXPECT_EQ(std::isfinite(a[2 * W + i]), std::isfinite(b[2 * W + i])) << bad;
      for (int64_t t : {0, 1, 3, 4})
        for (int64_t i = 0; i < W; ++i) ASSERT_TRUE(std::isfinite(b[t * W + i])) << "another row";
      silu_mul(reference, {gate.data(), T, W}, {x.data(), T, W}, {a.data(), T, W});
      silu_mul(fast, {gate.data(), T, W}, {x.data(), T, W}, {b.data(), T, W});
      close("silu_mul");
      const std::vector<float> taps = random.normal(4 * W);
      causal_conv_silu(reference, {x.data(), 2, W}, {x.data() + 2 * W, 3, W}, {taps.data(), 4, W}, 1,
                       {a.data(), 2, W});
      causal_conv_silu(fast, {x.data(), 2, W}, {x.data() + 2 * W, 3, W}, {taps.data(), 4, W}, 1,
                       {b.data(), 2, W});
      for (int64_t i = 0; i < 2 * W; ++i)
        EXPECT_EQ(std::isfinite(a[i]), std::isfinite(b[i])) << "causal_conv " << i;
      // The delta rule: a column of one head.
      const GatedDeltaShape shape{1, 1, 8, static_cast<int>(W), HeadPairing::kTiled};
      const std::vector<float> q = random.normal(T * 8, 0.2f), k = random.normal(T * 8, 0.2f);
      const std::vector<float> decay(T, 0.9f), beta(T, 0.5f);
      std::vector<float> state(8 * W, 0.1f), state2 = state;
      gated_delta_rule(reference, shape, {q.data(), T, 8}, {k.data(), T, 8}, {x.data(), T, W},
                       {decay.data(), T, 1}, {beta.data(), T, 1}, state.data(), {a.data(), T, W});
      gated_delta_rule(fast, shape, {q.data(), T, 8}, {k.data(), T, 8}, {x.data(), T, W},
                       {decay.data(), T, 1}, {beta.data(), T, 1}, state2.data(), {b.data(), T, W});
      for (int64_t i = 0; i < T * W; ++i)
        EXPECT_EQ(std::isfinite(a[i]), std::isfinite(b[i])) << "gated_delta, element " << i << " of " << W;
    }
}

TEST_F(Parity, BlockScores) {
  Random random(19);
  for (int dim : {4, 20, 128}) {
    const std::vector<float> q = random.normal(4 * dim), keys = random.normal(50 * dim);
    std::vector<float> a(50), b(50);
    score_blocks(Isa::kReference, q.data(), 4, dim, keys.data(), 50, a.data());
    score_blocks(best_isa(), q.data(), 4, dim, keys.data(), 50, b.data());
    expect_close(a, b, uniform_bound(50, kEps * 4 * dim * 4), "score_blocks");
  }
}

}  // namespace
}  // namespace forebay
