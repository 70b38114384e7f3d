// The f32 kernels of every fast instruction set: the same bits, which are written down here because no
// machine has two of them to compare. (8-bit products are compared with plain C++ in int8_test.cpp.) A change
// of a kernel's order of additions changes a number below; a number that differs on one processor only is a
// bug.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "core/hash.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/block_codes.h"
#include "kernels/block_select.h"
#include "kernels/gated_delta.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kv_memory.h"

namespace forebay {
namespace {

/// Numbers that no mathematical library had a hand in.
class Numbers {
 public:
  uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }
  std::vector<float> floats(int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = (static_cast<float>(bits() >> 8) - 0x1p23f) * 0x1p-22f;  // [-2, 2)
    return v;
  }
  /// Half-precision fields, wherever they are, are ordinary numbers.
  std::vector<std::byte> blocks(int64_t n) {
    std::vector<std::byte> v(static_cast<size_t>(n));
    for (std::byte& b : v) b = static_cast<std::byte>((bits() >> 24 & 0x3b) | 4);
    return v;
  }

 private:
  uint64_t state_ = 1;
};

class PortableBits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (best_isa() == Isa::kReference) GTEST_SKIP() << "no fast instruction set on this machine";
  }
  static uint64_t hash(const std::vector<float>& v) { return fast_checksum(std::as_bytes(std::span(v))); }

  Numbers numbers;
  ThreadPool pool{1};
  KernelContext ctx{pool, best_isa()};
};

TEST_F(PortableBits, ExactProducts) {
  std::vector<float> all;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ2_0,
                           DType::kQ3_K, DType::kQ4_K, DType::kQ6_K, DType::kIQ4_NL, DType::kMXFP4,
                           DType::kIQ2_XS, DType::kIQ3_S, DType::kIQ1_M})
    for (const int64_t T : {1, 5}) {
      const int64_t K = 768, N = 21;
      std::vector<std::byte> bytes = numbers.blocks(N * row_bytes(type, K));
      if (type == DType::kF32) std::memcpy(bytes.data(), numbers.floats(N * K).data(), bytes.size());
      const std::vector<float> x = numbers.floats(T * K);
      std::vector<float> y(static_cast<size_t>(T * N));
      matmul(ctx, {bytes.data(), type, N, K, row_bytes(type, K)}, {x.data(), T, K}, {y.data(), T, N});
      all.insert(all.end(), y.begin(), y.end());
    }
  EXPECT_EQ(hash(all), 11615543514272445827u);
}

TEST_F(PortableBits, Attention) {
  std::vector<float> all;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8}) {
    const int64_t T = 3, n_cells = 700;
    const int dim = 72;
    const AttentionShape shape{4, 2, dim, 0.125f};
    const std::vector<float> q = numbers.floats(T * 4 * dim);
    testing::KvMemory keys(type, 2, dim, numbers.floats(n_cells * 2 * dim), best_isa());
    testing::KvMemory values(type, 2, dim, numbers.floats(n_cells * 2 * dim), best_isa());
    const std::vector<CellRange> a{{0, 698}}, b{{0, 1}, {3, 699}}, c{{5, 700}};
    const std::vector<std::span<const CellRange>> ranges{a, b, c};
    std::vector<float> y(static_cast<size_t>(T * 4 * dim));
    attend(ctx, shape, {q.data(), T, 4 * dim}, keys.rows, values.rows, ranges, {y.data(), T, 4 * dim});
    all.insert(all.end(), y.begin(), y.end());
  }
  EXPECT_EQ(hash(all), 5228400016206433422u);
}

TEST_F(PortableBits, DeltaRule) {
  const GatedDeltaShape shape{2, 4, 40, 44, HeadPairing::kTiled};
  const int64_t T = 5, kw = 80, vw = 176;
  const std::vector<float> q = numbers.floats(T * kw), v = numbers.floats(T * vw);
  std::vector<float> k = numbers.floats(T * kw), decay = numbers.floats(T * 4), beta = numbers.floats(T * 4);
  for (float& x : k) x *= 0.125f;
  for (float& x : decay) x = 0.75f + x / 8;
  std::vector<float> state = numbers.floats(4 * 40 * 44), y(static_cast<size_t>(T * vw));
  gated_delta_rule(ctx, shape, {q.data(), T, kw}, {k.data(), T, kw}, {v.data(), T, vw}, {decay.data(), T, 4},
                   {beta.data(), T, 4}, state.data(), {y.data(), T, vw});
  y.insert(y.end(), state.begin(), state.end());
  EXPECT_EQ(hash(y), 11634055496680215266u);
}

TEST_F(PortableBits, RowsAndBlockScores) {
  std::vector<float> all;
  for (const int64_t W : {1, 7, 8, 100}) {
    const std::vector<float> x = numbers.floats(3 * W), gate = numbers.floats(3 * W),
                             weight = numbers.floats(W);
    std::vector<float> y(static_cast<size_t>(3 * W));
    const auto keep = [&] { all.insert(all.end(), y.begin(), y.end()); };
    rms_norm(ctx, {x.data(), 3, W}, weight, 1e-6f, {y.data(), 3, W});
    keep();
    silu_mul(ctx, {gate.data(), 3, W}, {x.data(), 3, W}, {y.data(), 3, W});
    keep();
    sigmoid_mul(ctx, {x.data(), 3, W}, {gate.data(), 3, W}, {y.data(), 3, W});
    keep();
  }
  const std::vector<float> q = numbers.floats(5 * 36), pooled = numbers.floats(50 * 36);
  std::vector<float> score(50);
  score_blocks(best_isa(), q.data(), 5, 36, pooled.data(), 50, score.data());
  all.insert(all.end(), score.begin(), score.end());
  EXPECT_EQ(hash(all), 1075323307241475466u);
}

TEST_F(PortableBits, BlockBounds) {
  const std::vector<float> q = numbers.floats(5 * 37), pooled = numbers.floats(50 * 37);
  std::vector<std::byte> tiles(static_cast<size_t>(BlockCodes::n_tiles(50) * BlockCodes::tile_bytes(37)));
  const BlockCodes codes{.tiles = tiles.data(), .dim = 37};
  encode_blocks(pooled.data(), 0, 50, codes);
  CodedQuery coded;
  ASSERT_TRUE(encode_query(q.data(), 5, 37, coded));
  std::vector<float> low(64), high(64);
  bound_scores(best_isa(), has_vnni(), coded, codes, 0, BlockCodes::n_tiles(50), low.data(), high.data());
  low.resize(50);
  low.insert(low.end(), high.begin(), high.begin() + 50);
  EXPECT_EQ(hash(low), 8792117895918622474u);
}

}  // namespace
}  // namespace forebay
