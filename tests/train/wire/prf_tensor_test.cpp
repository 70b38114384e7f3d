// The wire's randomness as tensors, against the plain definition; masks and packing over them.
#include "train/wire/prf_tensor.h"

#include <gtest/gtest.h>

#include "train/wire/pack.h"
#include "train/wire/prf.h"
#include "train/wire/subset.h"

namespace forebay::train {
namespace {

TEST(Prf, TensorsHoldTheSameBits) {
  const uint64_t stream = prf_stream(PrfUse::kNoise, {5, 6, 7, 0});
  for (const int64_t width : {1, 7, 1536}) {
    const torch::Tensor plain = prf_uniform_rows(stream, 100, 9, width, torch::kCPU);
    EXPECT_TRUE(torch::equal(plain, prf_uniform_tensor(stream, 100, 9, width, torch::kCPU)));
    for (const int64_t i : {0, 8})
      EXPECT_EQ(plain[i][width - 1].item<float>(), prf_uniform(prf_at(prf_at(stream, 100 + i), width - 1)));
  }
  for (const auto& [width, k] : {std::pair<int64_t, int64_t>{1536, 77}, {64, 64}, {64, 0}, {1, 1}}) {
    const torch::Tensor rows = prf_exact_k_rows(stream, 3, 5, width, k, torch::kCPU);
    EXPECT_TRUE(torch::equal(rows, prf_exact_k_tensor(stream, 3, 5, width, k, torch::kCPU)));
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_TRUE(
          torch::equal(rows[i], torch::tensor(prf_exact_k(prf_at(stream, 3 + i), width, k), torch::kInt64)));
  }
}

TEST(Prf, OtherDevicesHoldTheSameBits) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  const uint64_t stream = prf_stream(PrfUse::kNoise, {5, 6, 7, 0});
  EXPECT_TRUE(torch::equal(prf_uniform_rows(stream, 9, 33, 1536, torch::kCPU),
                           prf_uniform_rows(stream, 9, 33, 1536, torch::kCUDA).cpu()));
  EXPECT_TRUE(torch::equal(prf_exact_k_rows(stream, 9, 33, 1536, 77, torch::kCPU),
                           prf_exact_k_rows(stream, 9, 33, 1536, 77, torch::kCUDA).cpu()));
}

TEST(Prf, UniformsAreUniform) {
  const torch::Tensor u = prf_uniform_rows(17, 0, 500, 1000, torch::kCPU).to(torch::kDouble);
  EXPECT_GE(u.min().item<double>(), 0);
  EXPECT_LT(u.max().item<double>(), 1);
  EXPECT_NEAR(u.mean().item<double>(), 0.5, 0.002);
  EXPECT_NEAR((u * u).mean().item<double>(), 1.0 / 3, 0.002);
  // Neither neighbours in a row nor in a column know of each other.
  const torch::Tensor centred = u - 0.5;
  EXPECT_NEAR((centred.slice(1, 1) * centred.slice(1, 0, 999)).mean().item<double>(), 0, 5e-4);
  EXPECT_NEAR((centred.slice(0, 1) * centred.slice(0, 0, 499)).mean().item<double>(), 0, 5e-4);
}

TEST(Masks, AreKeptPerKeyAndTheSameWhenMadeAgain) {
  MaskSource masks(5, MaskScope::kStep);
  const Subset first = masks.subset({.step = 1}, 4, 64, torch::kCPU);
  EXPECT_TRUE(first.index.is_same(masks.subset({.step = 1, .micro_batch = 3}, 9, 64, torch::kCPU).index));
  for (int64_t step = 2; step < 200; ++step) masks.subset({.step = step}, 4, 64, torch::kCPU);
  const Subset again = masks.subset({.step = 1}, 4, 64, torch::kCPU);
  EXPECT_FALSE(first.index.is_same(again.index));
  EXPECT_TRUE(torch::equal(first.index, again.index));
}

TEST(Masks, SpreadUndoesTake) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({6, 40});
  for (const MaskScope scope : {MaskScope::kStep, MaskScope::kToken}) {
    const Subset subset = MaskSource(11, scope).subset({}, 6, 40, torch::kCPU);
    const torch::Tensor kept = subset.spread(subset.take(x));
    EXPECT_EQ((kept != 0).sum().item<int64_t>(), 6 * 11);
    EXPECT_TRUE(torch::equal(torch::where(kept != 0, x, kept), kept));
  }
}

TEST(Pack, RoundTripsEveryWidthAndLength) {
  torch::manual_seed(1);
  for (int bits = 1; bits <= 8; ++bits)
    for (const int64_t n : {0, 1, 7, 8, 9, 493, 4096}) {
      const torch::Tensor codes = torch::randint(0, 1 << bits, {n}, torch::kUInt8);
      const torch::Tensor packed = pack_bits(codes, bits);
      EXPECT_EQ(packed.numel(), packed_bytes(n, bits));
      EXPECT_TRUE(torch::equal(unpack_bits(packed, n, bits), codes)) << bits << " bits, " << n;
      if (bits == 8) continue;
      EXPECT_TRUE(torch::equal(packed, pack_bits_with_tensors(codes, bits))) << bits << " bits, " << n;
      EXPECT_TRUE(torch::equal(unpack_bits_with_tensors(packed, n, bits), codes)) << bits << " bits, " << n;
    }
  const torch::Tensor values = torch::randn({3, 5}).to(torch::kBFloat16);
  EXPECT_TRUE(torch::equal(bf16_from_bytes(bf16_bytes(values)), values.reshape({-1})));
}

TEST(Pack, Layout) {
  const torch::Tensor codes = torch::tensor({1, 2, 3, 4, 5, 6, 7, 0, 7}, torch::kUInt8);
  const torch::Tensor packed = pack_bits(codes, 3);
  // 001 010 011 100 101 110 111 000 111, each from its lowest bit.
  EXPECT_TRUE(torch::equal(packed, torch::tensor({0xd1, 0x58, 0x1f, 0x07}, torch::kUInt8)));
  EXPECT_TRUE(torch::equal(bf16_bytes(torch::ones({1}, torch::kBFloat16)),
                           torch::tensor({0x80, 0x3f}, torch::kUInt8)));
}

}  // namespace
}  // namespace forebay::train
