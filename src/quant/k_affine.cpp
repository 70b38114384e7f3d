/// Super-blocks of 256 weights with a scale and a minimum per run: Q2_K, Q4_K, Q5_K.
/// w = (d * scale) * q - (dmin * minimum), scale and minimum being small integers of the run.
#include <algorithm>
#include <array>

#include "quant/block.h"
#include "quant/scale_search.h"

namespace forebay {
namespace {

/// A super-block on its way to bytes: integer scales and minima per run, a code per weight.
template <int kRuns>
struct AffineBlock {
  static constexpr int kRunWeights = 256 / kRuns;

  float d, dmin;  // as halves hold them
  std::array<int, kRuns> scales, minima;
  std::array<uint8_t, 256> codes;
};

/// `importance` fills the weight of each element's error for one run.
template <int kRuns, typename Importance>
AffineBlock<kRuns> quantize_affine(const float* x, const AffineSearch& search, int max_scale,
                                   Importance importance) {
  constexpr int kRunWeights = AffineBlock<kRuns>::kRunWeights;
  AffineBlock<kRuns> block;
  std::array<AffineFit, kRuns> fits;
  float largest_scale = 0, largest_minimum = 0;
  for (int run = 0; run < kRuns; ++run) {
    const std::span<const float> x_run(x + run * kRunWeights, kRunWeights);
    std::array<float, kRunWeights> weights;
    importance(x_run, weights);
    fits[run] = fit_affine(x_run, weights, search, &block.codes[run * kRunWeights]);
    largest_scale = std::max(largest_scale, fits[run].scale);
    largest_minimum = std::max(largest_minimum, -fits[run].minimum);
  }

  const auto max = static_cast<float>(max_scale);
  const float inverse_scale = largest_scale > 0 ? max / largest_scale : 0;
  const float inverse_minimum = largest_minimum > 0 ? max / largest_minimum : 0;
  block.d = f32_from_f16(f16_from_f32(largest_scale / max));
  block.dmin = f32_from_f16(f16_from_f32(largest_minimum / max));
  for (int run = 0; run < kRuns; ++run) {
    block.scales[run] = round_even(inverse_scale * fits[run].scale, 0, max_scale);
    block.minima[run] = round_even(inverse_minimum * -fits[run].minimum, 0, max_scale);
    // The codes once more, for the scales as they are stored.
    const float scale = block.d * static_cast<float>(block.scales[run]);
    const float minimum = block.dmin * static_cast<float>(block.minima[run]);
    if (scale == 0) continue;
    for (int i = run * kRunWeights; i < (run + 1) * kRunWeights; ++i)
      block.codes[i] = static_cast<uint8_t>(round_even((x[i] + minimum) / scale, 0, search.max_code));
  }
  return block;
}

void magnitude_importance(std::span<const float> x, std::span<float> weights) {
  for (size_t i = 0; i < x.size(); ++i) weights[i] = std::fabs(x[i]);
}

void rms_importance(std::span<const float> x, std::span<float> weights) {
  float sum = 0;
  for (float value : x) sum += value * value;
  const float rms = std::sqrt(sum / static_cast<float>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) weights[i] = rms + std::fabs(x[i]);
}

/// 16 runs of 16; one byte per run, scale low and minimum high. A byte of codes serves the weights l, l + 32,
/// l + 64, l + 96 of its half.
struct Q2_K {
  static constexpr DType kType = DType::kQ2_K;
  static constexpr int kWeights = 256, kBytes = 84;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b + 80), dmin = load_half(b + 82);
    for (int i = 0; i < 256; ++i) {
      const int run = i / 16;
      const int q = two_bits(b[16 + 32 * (i / 128) + i % 32], i % 128 / 32);
      w[i] = d * static_cast<float>(b[run] & 15) * static_cast<float>(q) -
             dmin * static_cast<float>(b[run] >> 4);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    constexpr AffineSearch kSearch{
        .max_code = 3, .first_step = -0.5f, .n_trials = 16, .absolute_error = true};
    const auto block = quantize_affine<16>(x, kSearch, 15, magnitude_importance);
    for (int run = 0; run < 16; ++run)
      b[run] = static_cast<uint8_t>(block.scales[run] | block.minima[run] << 4);
    std::memset(b + 16, 0, 64);
    for (int i = 0; i < 256; ++i)
      b[16 + 32 * (i / 128) + i % 32] |= static_cast<uint8_t>(block.codes[i] << 2 * (i % 128 / 32));
    store_half(b + 80, block.d);
    store_half(b + 82, block.dmin);
  }
};

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

/// Eight 6-bit pairs in 12 bytes: the first four pairs whole in bytes 0..3 and 4..7; of the others the low
/// nibbles in bytes 8..11 and the top two bits above the first four's.
ScaleAndMinimum unpack_pair(const uint8_t* packed, int run) {
  if (run < 4) return {packed[run] & 63, packed[run + 4] & 63};
  return {(packed[run + 4] & 15) | packed[run - 4] >> 6 << 4, packed[run + 4] >> 4 | packed[run] >> 6 << 4};
}

void pack_pairs(const AffineBlock<8>& block, uint8_t* packed) {
  for (int run = 0; run < 4; ++run) {
    const int late_scale = block.scales[run + 4], late_minimum = block.minima[run + 4];
    packed[run] = static_cast<uint8_t>(block.scales[run] | late_scale >> 4 << 6);
    packed[run + 4] = static_cast<uint8_t>(block.minima[run] | late_minimum >> 4 << 6);
    packed[run + 8] = static_cast<uint8_t>((late_scale & 15) | (late_minimum & 15) << 4);
  }
}

// Nibbles of Q4_K and Q5_K: 32 bytes per 64 weights, low halves first.
int group_nibble(const uint8_t* nibbles, int i) {
  return nibble(nibbles[32 * (i / 64) + i % 32], i / 32 % 2);
}

void store_group_nibbles(const std::array<uint8_t, 256>& codes, uint8_t* nibbles) {
  for (int k = 0; k < 128; ++k) {
    const int i = 64 * (k / 32) + k % 32;
    nibbles[k] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 32] & 15) << 4);
  }
}

struct Q4_K {
  static constexpr DType kType = DType::kQ4_K;
  static constexpr int kWeights = 256, kBytes = 144;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b), dmin = load_half(b + 2);
    for (int i = 0; i < 256; ++i) {
      const auto [scale, minimum] = unpack_pair(b + 4, i / 32);
      w[i] = d * static_cast<float>(scale) * static_cast<float>(group_nibble(b + 16, i)) -
             dmin * static_cast<float>(minimum);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    constexpr AffineSearch kSearch{.max_code = 15, .first_step = -1, .n_trials = 21, .absolute_error = false};
    const auto block = quantize_affine<8>(x, kSearch, 63, rms_importance);
    store_half(b, block.d);
    store_half(b + 2, block.dmin);
    pack_pairs(block, b + 4);
    store_group_nibbles(block.codes, b + 16);
  }
};

/// Q4_K with fifth bits: of weight i, bit i / 32 of byte i % 32.
struct Q5_K {
  static constexpr DType kType = DType::kQ5_K;
  static constexpr int kWeights = 256, kBytes = 176;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b), dmin = load_half(b + 2);
    for (int i = 0; i < 256; ++i) {
      const auto [scale, minimum] = unpack_pair(b + 4, i / 32);
      const int q = group_nibble(b + 48, i) | (b[16 + i % 32] >> i / 32 & 1) << 4;
      w[i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(minimum);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    constexpr AffineSearch kSearch{
        .max_code = 31, .first_step = -0.5f, .n_trials = 16, .absolute_error = false};
    const auto block = quantize_affine<8>(x, kSearch, 63, rms_importance);
    store_half(b, block.d);
    store_half(b + 2, block.dmin);
    pack_pairs(block, b + 4);
    std::memset(b + 16, 0, 32);
    for (int i = 0; i < 256; ++i) b[16 + i % 32] |= static_cast<uint8_t>(block.codes[i] >> 4 << i / 32);
    store_group_nibbles(block.codes, b + 48);
  }
};

}  // namespace

std::span<const Codec> k_affine_codecs() {
  static constexpr std::array kCodecs = {codec_of<Q2_K>(), codec_of<Q4_K>(), codec_of<Q5_K>()};
  return kCodecs;
}

}  // namespace forebay
