#include "tensor/half.h"

#include <cmath>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(Half, AllValuesWidenToWhatTheBitsSay) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), mantissa != 0) << bits;
      ASSERT_EQ(std::isinf(value), mantissa == 0) << bits;
    } else {
      const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                            : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
      ASSERT_EQ(std::fabs(value), magnitude) << bits;
    }
  }
}

TEST(Half, Bfloat16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(bf16_to_float(0x3f80), 1.0f);
  EXPECT_EQ(bf16_to_float(0xc040), -3.0f);
  EXPECT_TRUE(std::isinf(bf16_to_float(0x7f80)));
  EXPECT_TRUE(std::isnan(bf16_to_float(0x7fc0)));
  EXPECT_EQ(bf16_to_float(0x0001), std::ldexp(1.0f, -133));
}

}  // namespace
}  // namespace forebay
