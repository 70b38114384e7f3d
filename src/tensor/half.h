/// IEEE binary16 and bfloat16 to and from f32, in integers: the same bits on every machine.
#pragma once

#include <bit>
#include <cstdint>

namespace forebay {

/// Exact. A signalling NaN comes out quiet, as the processor's own conversion does.
constexpr float f32_from_f16(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 31u;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  if (exponent == 0) {  // subnormal: units of 2^-24, a normal f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// To nearest, ties to even; 65520 and above become infinity; NaN stays NaN.
constexpr uint16_t f16_from_f32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520: halfway between 65504 and 65536
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14
    // One unit of 0.5f's last place is 2^-24, the unit of a subnormal half: the sum rounds for us.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

constexpr float f32_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// To nearest, ties to even; NaN keeps its upper bits and becomes quiet.
constexpr uint16_t bf16_from_f32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace forebay
