/// Super-blocks of 256 weights with one signed scale per run of 16 and codes around zero: Q3_K, Q6_K.
/// w = (d * scale) * q; d is stored at the end of the block.
#include <algorithm>
#include <array>

#include "quant/block.h"
#include "quant/scale_search.h"

namespace forebay {
namespace {

struct SymmetricBlock {
  float d;              // as a half holds it
  float largest_scale;  // of a run, as fitted
  std::array<int, 16> scales;
  std::array<int8_t, 256> codes;
};

using Fit = float (*)(std::span<const float> x, int half_range, int8_t* codes);

/// Integer scales reach -scale_range .. scale_range - 1: the run of largest scale gets exactly -scale_range.
SymmetricBlock quantize_symmetric(const float* x, Fit fit, int half_range, int scale_range) {
  SymmetricBlock block;
  std::array<float, 16> scales;
  for (int run = 0; run < 16; ++run)
    scales[run] = fit({x + 16 * run, 16}, half_range, &block.codes[16 * run]);

  block.largest_scale = signed_max(scales);
  const float inverse = block.largest_scale != 0 ? static_cast<float>(-scale_range) / block.largest_scale : 0;
  block.d = f32_from_f16(f16_from_f32(inverse_or_zero(inverse)));
  for (int run = 0; run < 16; ++run) {
    block.scales[run] = round_even(inverse * scales[run], -scale_range, scale_range - 1);
    // The codes once more, for the scales as they are stored.
    const float scale = block.d * static_cast<float>(block.scales[run]);
    if (scale == 0) continue;
    for (int i = 16 * run; i < 16 * run + 16; ++i)
      block.codes[i] = static_cast<int8_t>(round_even(x[i] / scale, -half_range, half_range - 1));
  }
  return block;
}

/// 3-bit codes: two bits laid out as Q2_K's, the third in a mask where a clear bit means "subtract 4".
/// 6-bit scales, biased by 32: low nibbles in bytes 0..7, top bits in bytes 8..11 of their field.
struct Q3_K {
  static constexpr DType kType = DType::kQ3_K;
  static constexpr int kWeights = 256, kBytes = 110;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b + 108);
    for (int i = 0; i < 256; ++i) {
      const int run = i / 16;
      const int scale = nibble(b[96 + run % 8], run / 8) | two_bits(b[104 + run % 4], run / 4) << 4;
      const int high_bit = b[i % 32] >> i / 32 & 1;
      const int q = two_bits(b[32 + 32 * (i / 128) + i % 32], i % 128 / 32) - (high_bit != 0 ? 0 : 4);
      w[i] = d * static_cast<float>(scale - 32) * static_cast<float>(q);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    const SymmetricBlock block = quantize_symmetric(x, fit_symmetric_descent, 4, 32);
    std::memset(b, 0, kBytes);
    for (int i = 0; i < 256; ++i) {
      const int q = block.codes[i] + 4;
      b[i % 32] |= static_cast<uint8_t>(q >> 2 << i / 32);
      b[32 + 32 * (i / 128) + i % 32] |= static_cast<uint8_t>((q & 3) << 2 * (i % 128 / 32));
    }
    for (int run = 0; run < 16; ++run) {
      const int scale = block.largest_scale != 0 ? block.scales[run] + 32 : 0;
      b[96 + run % 8] |= static_cast<uint8_t>((scale & 15) << 4 * (run / 8));
      b[104 + run % 4] |= static_cast<uint8_t>(scale >> 4 << 2 * (run / 4));
    }
    store_half(b + 108, block.d);
  }
};

/// 6-bit codes, biased by 32: per half of 128 weights 64 bytes of low nibbles and 32 of high pairs.
struct Q6_K {
  static constexpr DType kType = DType::kQ6_K;
  static constexpr int kWeights = 256, kBytes = 210;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b + 208);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, k = i % 128;
      const int low = nibble(b[64 * half + k % 64], k / 64);
      const int high = two_bits(b[128 + 32 * half + k % 32], k / 32);
      w[i] =
          d * static_cast<float>(signed_byte(b[192 + i / 16])) * static_cast<float>((low | high << 4) - 32);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    const SymmetricBlock block = quantize_symmetric(x, fit_symmetric_scan, 32, 128);
    std::memset(b, 0, kBytes);
    if (std::fabs(block.largest_scale) < kNegligible) return;
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, k = i % 128, q = block.codes[i] + 32;
      b[64 * half + k % 64] |= static_cast<uint8_t>((q & 15) << 4 * (k / 64));
      b[128 + 32 * half + k % 32] |= static_cast<uint8_t>(q >> 4 << 2 * (k / 32));
    }
    for (int run = 0; run < 16; ++run) b[192 + run] = static_cast<uint8_t>(block.scales[run]);
    store_half(b + 208, block.d);
  }
};

}  // namespace

std::span<const Codec> k_symmetric_codecs() {
  static constexpr std::array kCodecs = {codec_of<Q3_K>(), codec_of<Q6_K>()};
  return kCodecs;
}

}  // namespace forebay
