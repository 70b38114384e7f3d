// The wire's randomness: fixed vectors, and tensors against the plain definition.
#include "train/wire/prf.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "train/wire/pack.h"
#include "train/wire/prf_tensor.h"
#include "train/wire/subset.h"

namespace forebay::train {
namespace {

TEST(Prf, Vectors) {
  // The first output of splitmix64 seeded with 0, as published; the rest from another program.
  EXPECT_EQ(prf_mix(kPrfGolden), 0xe220a8397b1dcdafu);
  EXPECT_EQ(prf_mix(1), 0x5692161d100b05e5u);
  const uint64_t mask = prf_stream(PrfUse::kMask, {42, 7, 3});
  EXPECT_EQ(mask, 0x4f11d519ba99b9cbu);
  EXPECT_EQ(prf_at(mask, 0), 0x7743343fdd39c569u);
  EXPECT_EQ(prf_at(mask, 1535), 0x79df64ab722a5a4du);
  const uint64_t noise = prf_stream(PrfUse::kNoise, {42, 7, 3, 1});
  EXPECT_EQ(noise, 0xe5fdaadff85519ecu);
  EXPECT_EQ(prf_at(noise, 5), 0xd0f2e39b7cac07f1u);
  EXPECT_EQ(prf_at(prf_at(noise, 5), 11), 0x76d920dae397eacfu);
  EXPECT_EQ(prf_uniform(prf_at(prf_at(noise, 5), 11)), 7788832 * 0x1p-24f);
  EXPECT_EQ(prf_exact_k(mask, 64, 5), (std::vector<int64_t>{2, 3, 5, 37, 63}));
  const std::vector<int64_t> study = prf_exact_k(mask, 1536, 77);
  EXPECT_EQ(study.size(), 77u);
  EXPECT_EQ(std::accumulate(study.begin(), study.end(), int64_t{0}), 64079);
  EXPECT_EQ(study.back(), 1483);
}

TEST(Prf, ExactlyKAndEveryCoordinateEquallyOften) {
  constexpr int64_t kMasks = 20000;
  constexpr int64_t kWidth = 1536;
  constexpr int64_t kOnes = 77;
  std::vector<int64_t> n_chosen(kWidth, 0);
  for (int64_t step = 0; step < kMasks; ++step) {
    const std::vector<int64_t> chosen =
        prf_exact_k(prf_stream(PrfUse::kMask, {1, static_cast<uint64_t>(step), 0}), kWidth, kOnes);
    ASSERT_EQ(chosen.size(), static_cast<size_t>(kOnes));
    ASSERT_TRUE(std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal<>()) == chosen.end());
    for (const int64_t j : chosen) ++n_chosen[j];
  }
  const double rate = static_cast<double>(kOnes) / kWidth;
  const double sd = std::sqrt(kMasks * rate * (1 - rate));
  double largest = 0;
  for (const int64_t n : n_chosen)
    largest = std::max(largest, std::abs(static_cast<double>(n) - kMasks * rate) / sd);
  // The largest of 1536 normal deviations is about 3.4, and past 5 once in a thousand runs.
  EXPECT_LT(largest, 5.0);
  EXPECT_GT(largest, 2.5);
  std::printf("20000 masks: the largest deviation of a coordinate's rate is %.2f standard deviations\n",
              largest);
}

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
