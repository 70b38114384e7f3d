#include "train/wire/quantize_rows.h"

#include <algorithm>
#include <bit>

#include "train/wire/prf.h"

namespace forebay::train {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;
constexpr uint16_t kBf16Nan = 0x7fc0;
constexpr uint16_t kSmallestScale = (127 - 100) << 7;  // 2^-100
constexpr int64_t kBlock = 64;                         // coordinates that are worked on at a time

float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// The smallest bf16 that is not below the largest absolute value, 0 for what is tiny.
uint16_t scale_of(const float* x, int64_t n) {
  uint32_t largest = 0;  // as integers, absolute values are in the order of numbers, what is no number last
  for (int64_t j = 0; j < n; ++j) largest = std::max(largest, std::bit_cast<uint32_t>(x[j]) & ~kSign);
  if (largest > kInfinity) return kBf16Nan;
  const uint32_t up = largest == kInfinity ? largest : largest + 0xffff;
  const auto scale = static_cast<uint16_t>(up >> 16);
  return scale < kSmallestScale ? 0 : scale;
}

/// q = floor(z) + (u < z - floor(z)); z is small and not negative, so a cast is its floor.
void round_at_random(const float* z, int64_t n, int32_t top, uint64_t stream, int64_t first, uint8_t* codes) {
  float uniforms[kBlock];
  for (int64_t j = 0; j < n; ++j) uniforms[j] = prf_uniform(prf_at(stream, static_cast<uint64_t>(first + j)));
  for (int64_t j = 0; j < n; ++j) {
    const auto below = static_cast<int32_t>(z[j]);
    const int32_t q = below + (uniforms[j] < z[j] - static_cast<float>(below) ? 1 : 0);
    codes[j] = static_cast<uint8_t>(std::min(q, top));
  }
}

/// Half to even: past 2^23 f32 has no fractions.
void round_to_nearest(const float* z, int64_t n, int32_t top, uint8_t* codes) {
  constexpr float kNoFraction = 0x1p23f;
  for (int64_t j = 0; j < n; ++j) {
    const auto q = static_cast<int32_t>((z[j] + kNoFraction) - kNoFraction);
    codes[j] = static_cast<uint8_t>(std::min(q, top));
  }
}

}  // namespace

void quantize_row(const float* x, int64_t width, const LevelCode& code, std::optional<uint64_t> noise,
                  uint8_t* codes, uint16_t* scales) {
  const int32_t top = (1 << code.bits) - 1;
  float z[kBlock];
  for (int64_t begin = 0; begin < width; begin += code.group) {
    const int64_t n_group = std::min(code.group, width - begin);
    const uint16_t scale = *scales++ = scale_of(x + begin, n_group);
    const float s = from_bf16(scale);
    if (scale == 0 || scale >= kInfinity >> 16) {
      std::fill_n(codes + begin, n_group, uint8_t{0});
      continue;
    }
    const float per_level = static_cast<float>(top) / (2 * s);
    for (int64_t at = begin; at < begin + n_group; at += kBlock) {
      const int64_t n = std::min(kBlock, begin + n_group - at);
      for (int64_t j = 0; j < n; ++j) z[j] = (x[at + j] + s) * per_level;
      if (noise)
        round_at_random(z, n, top, *noise, at, codes + at);
      else
        round_to_nearest(z, n, top, codes + at);
    }
  }
}

void dequantize_row(const uint8_t* codes, const uint16_t* scales, int64_t width, const LevelCode& code,
                    float* x) {
  const auto top = static_cast<float>((1 << code.bits) - 1);
  for (int64_t begin = 0; begin < width; begin += code.group) {
    const float s = from_bf16(*scales++), level = 2 * s / top;
    const int64_t end = std::min(begin + code.group, width);
    for (int64_t j = begin; j < end; ++j) x[j] = static_cast<float>(codes[j]) * level - s;
  }
}

// Eight codes of b bits are b bytes: one 64-bit word holds them.

void pack_codes(const uint8_t* codes, int64_t n, int bits, uint8_t* packed) {
  for (int64_t begin = 0; begin < n; begin += 8) {
    const int64_t n_codes = std::min<int64_t>(8, n - begin);
    uint64_t word = 0;
    for (int64_t i = 0; i < n_codes; ++i) word |= static_cast<uint64_t>(codes[begin + i]) << (bits * i);
    for (int64_t i = 0; i < (n_codes * bits + 7) / 8; ++i) *packed++ = static_cast<uint8_t>(word >> (8 * i));
  }
}

void unpack_codes(const uint8_t* packed, int64_t n, int bits, uint8_t* codes) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int64_t begin = 0; begin < n; begin += 8) {
    const int64_t n_codes = std::min<int64_t>(8, n - begin);
    uint64_t word = 0;
    for (int64_t i = 0; i < (n_codes * bits + 7) / 8; ++i)
      word |= static_cast<uint64_t>(*packed++) << (8 * i);
    for (int64_t i = 0; i < n_codes; ++i) codes[begin + i] = static_cast<uint8_t>(word >> (bits * i) & mask);
  }
}

}  // namespace forebay::train
