#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(PhiloxTest, PublishedAnswers) {
  // The known-answer file of the authors' Random123 distribution.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformTest, IsTheDocumentedWord) {
  EXPECT_EQ(uniform(0, 0, 0), static_cast<double>(0xe169c58d6627e8d5ull >> 11) * 0x1p-53);
  EXPECT_EQ(uniform(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull),
            static_cast<double>(0x94fdccebd16cfe09ull >> 11) * 0x1p-53);
}

TEST(UniformTest, EveryArgumentMatters) {
  std::set<double> seen;
  for (const uint64_t seed : {0ull, 1ull, 1ull << 32, ~0ull})
    for (const uint64_t stream : {0ull, 1ull, 1ull << 32, ~0ull})
      for (const uint64_t position : {0ull, 1ull, 1ull << 32, ~0ull})
        seen.insert(uniform(seed, stream, position));
  EXPECT_EQ(seen.size(), 64u);
}

/// Chi-square statistic of n draws over 64 equal cells of [0, 1).
double chi_square(uint64_t n, auto&& value_at) {
  std::array<double, 64> cells{};
  for (uint64_t i = 0; i < n; ++i) {
    const double u = value_at(i);
    EXPECT_GE(u, 0);
    EXPECT_LT(u, 1);
    cells[static_cast<size_t>(u * 64)] += 1;
  }
  double statistic = 0;
  for (const double count : cells) statistic += std::pow(count - n / 64., 2) / (n / 64.);
  return statistic;
}

TEST(UniformTest, IsUniformAlongEachArgument) {
  // 63 degrees of freedom: 99.99 % of true uniforms stay between 28 and 114.
  for (const double statistic : {chi_square(64'000, [](uint64_t i) { return uniform(1, 2, i); }),
                                 chi_square(64'000, [](uint64_t i) { return uniform(1, i, 3); }),
                                 chi_square(64'000, [](uint64_t i) { return uniform(i, 2, 3); })}) {
    EXPECT_GT(statistic, 28);
    EXPECT_LT(statistic, 114);
  }
}

TEST(UniformTest, NeighboursAreUncorrelated) {
  constexpr int kDraws = 100'000;
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) sum += (uniform(9, 0, i) - 0.5) * (uniform(9, 0, i + 1) - 0.5);
  // Each product has variance 1/144: four standard deviations of the mean.
  EXPECT_LT(std::abs(sum / kDraws), 4 / 12.0 / std::sqrt(kDraws));
}

}  // namespace
}  // namespace forebay
