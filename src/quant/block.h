/// Private to this folder: what the format files share. A format is a struct with
///   kType, kWeights, kBytes
///   static void decode(const uint8_t* b, float* w)   one block of kBytes to kWeights weights
///   static void encode(const float* x, uint8_t* b)   the reverse; absent where the format is only read
/// Notation of the formulas: b[k] byte k of the block, w[i] or x[i] weight i, d the block's scale.
#pragma once

#include <cmath>
#include <cstring>
#include <span>

#include "quant/quant.h"
#include "tensor/half.h"

namespace forebay {

/// One table per file; quant.cpp joins them.
std::span<const Codec> plain_codecs();
std::span<const Codec> simple_block_codecs();
std::span<const Codec> k_affine_codecs();
std::span<const Codec> k_symmetric_codecs();
std::span<const Codec> iq1_codecs();
std::span<const Codec> iq2_codecs();
std::span<const Codec> iq3_codecs();
std::span<const Codec> iq4_codecs();
std::span<const Codec> ternary_codecs();
std::span<const Codec> fp4_codecs();

// Fields are little-endian and at any address.
template <typename T>
T load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <typename T>
void store(uint8_t* p, T value) {
  std::memcpy(p, &value, sizeof value);
}
inline float load_half(const uint8_t* p) {
  return f32_from_f16(load<uint16_t>(p));
}
inline void store_half(uint8_t* p, float value) {
  store(p, f16_from_f32(value));
}

inline int nibble(int byte, int high) {
  return byte >> 4 * high & 15;
}
inline int two_bits(int byte, int position) {
  return byte >> 2 * position & 3;
}
inline int signed_byte(uint8_t byte) {
  return static_cast<int8_t>(byte);
}

inline float inverse_or_zero(float f) {
  return f != 0 ? 1 / f : 0;
}

/// Encoders turn a scaled weight into a code in [low, high] in three ways. Clamped before the conversion:
/// a block of subnormal or enormous values makes infinite and NaN quotients, and those are codes too.
inline float clamp_code(float f, int low, int high) {
  if (!(f > static_cast<float>(low))) return static_cast<float>(low);  // and NaN
  return f < static_cast<float>(high) ? f : static_cast<float>(high);
}
inline int round_even(float f, int low, int high) {
  return static_cast<int>(std::nearbyint(clamp_code(f, low, high)));
}
inline int round_away(float f, int low, int high) {
  return static_cast<int>(std::round(clamp_code(f, low, high)));
}
inline int truncate(float f, int low, int high) {
  return static_cast<int>(clamp_code(f, low, high));
}

/// The first element of the largest magnitude, with its sign; 0 for all zeros.
inline float signed_max(std::span<const float> x) {
  float largest = 0;
  for (float value : x)
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  return largest;
}

template <typename Format>
void decode_blocks(const std::byte* blocks, int64_t n, float* out) {
  const auto* b = reinterpret_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += Format::kWeights, b += Format::kBytes) Format::decode(b, out + i);
}

template <typename Format>
void encode_blocks(const float* in, int64_t n, std::byte* blocks) {
  auto* b = reinterpret_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += Format::kWeights, b += Format::kBytes) Format::encode(in + i, b);
}

template <typename Format>
constexpr Codec codec_of() {
  if constexpr (requires(const float* x, uint8_t* b) { Format::encode(x, b); })
    return {Format::kType, decode_blocks<Format>, encode_blocks<Format>};
  else
    return {Format::kType, decode_blocks<Format>, nullptr};
}

}  // namespace forebay
