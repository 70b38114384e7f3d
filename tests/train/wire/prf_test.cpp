// The wire's randomness: fixed vectors, and masks of exactly k.
#include "train/wire/prf.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace forebay::train
