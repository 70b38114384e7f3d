#include "tensor/half.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace forebay {
namespace {

/// Every finite half, by definition: sign * mantissa * 2^exponent.
double value_of_half(int half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

constexpr int kInfinity = 0x7c00;

TEST(Half, EveryHalfWidensExactlyAndComesBack) {
  for (int half = 0; half < 0x10000; ++half) {
    const float value = f32_from_f16(static_cast<uint16_t>(half));
    if ((half & 0x7fff) > kInfinity) {
      ASSERT_TRUE(std::isnan(value)) << half;
      ASSERT_EQ(f16_from_f32(value), half | 0x200) << half;  // quiet, payload kept
      continue;
    }
    if ((half & 0x7fff) == kInfinity) {
      ASSERT_EQ(value, half & 0x8000 ? -INFINITY : INFINITY);
    } else {
      ASSERT_EQ(value, value_of_half(half)) << half;
      ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << half;
    }
    ASSERT_EQ(f16_from_f32(value), half);
  }
}

TEST(Half, RoundsToNearestTiesToEvenBetweenAllNeighbours) {
  // Up to infinity, whose place in the rounding is 65536.
  for (int half = 0; half < kInfinity; ++half) {
    const double low = value_of_half(half), high = half + 1 == kInfinity ? 65536.0 : value_of_half(half + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more than a half has
    const int even = half + (half & 1);
    ASSERT_EQ(f16_from_f32(middle), even) << middle;
    ASSERT_EQ(f16_from_f32(std::nextafter(middle, 0.0f)), half) << middle;
    ASSERT_EQ(f16_from_f32(std::nextafter(middle, INFINITY)), half + 1) << middle;
    ASSERT_EQ(f16_from_f32(-middle), even | 0x8000) << middle;
  }
}

TEST(Half, ExtremeFloats) {
  EXPECT_EQ(f16_from_f32(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(f16_from_f32(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f16_from_f32(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(Bfloat, RoundsToNearestTiesToEvenBetweenAllNeighbours) {
  for (uint32_t upper = 0; upper < 0x7f80; ++upper) {
    const auto exact = static_cast<uint16_t>(upper);
    ASSERT_EQ(bf16_from_f32(f32_from_bf16(exact)), upper);
    const uint32_t middle = upper << 16 | 0x8000u;
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>(middle)), upper + (upper & 1)) << upper;
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>(middle - 1)), upper) << upper;
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>(middle + 1)), upper + 1) << upper;
    ASSERT_EQ(bf16_from_f32(std::bit_cast<float>((middle + 1) | 0x80000000u)), (upper + 1) | 0x8000u)
        << upper;
  }
}

TEST(Bfloat, NanStaysNan) {
  // The payload lies in the lower half: rounding it away would leave infinity.
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_EQ(bf16_from_f32(nan), 0x7fc0);
  EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(nan))));
  EXPECT_EQ(bf16_from_f32(std::bit_cast<float>(0xffffffffu)), 0xffff);
}

}  // namespace
}  // namespace forebay
