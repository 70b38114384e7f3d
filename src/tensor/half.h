/// Exact widening of 16-bit floats, one value at a time: for readers and references, not for kernels.
#pragma once

#include <bit>
#include <cstdint>

namespace forebay {

/// IEEE binary16. Subnormals stay what they are; infinities and NaN payloads are kept.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  // A subnormal half is mantissa * 2^-24, which float holds exactly.
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13);
}

/// bfloat16: the upper half of a float.
inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace forebay
