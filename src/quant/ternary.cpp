/// Weights in {-d, 0, d}: TQ1_0 packs five base-3 digits in a byte, TQ2_0 four 2-bit codes.
#include <algorithm>
#include <array>

#include "quant/block.h"

namespace forebay {
namespace {

float largest_magnitude(const float* x) {
  return std::fabs(signed_max({x, 256}));
}

/// Where weight i of a TQ1_0 block lives: digit `power` (0 is the most significant) of a byte.
struct Digit {
  int byte;
  int power;
};

Digit digit_of(int i) {
  if (i < 160) return {i % 32, i / 32};
  if (i < 240) return {32 + (i - 160) % 16, (i - 160) / 16};
  return {48 + (i - 240) % 4, (i - 240) / 4};
}

constexpr std::array kPowersOf3 = {1, 3, 9, 27, 81};

/// A byte is the base-3 fraction 0.d0 d1 d2 d3 d4 in units of 1/256, rounded up: shifting digits out at the
/// top by multiplication brings each to the units place of v * 3 / 256.
struct TQ1_0 {
  static constexpr DType kType = DType::kTQ1_0;
  static constexpr int kWeights = 256, kBytes = 54;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b + 52);
    for (int i = 0; i < 256; ++i) {
      const auto [byte, power] = digit_of(i);
      const int digit = (b[byte] * kPowersOf3[power] % 256 * 3) >> 8;
      w[i] = d * static_cast<float>(digit - 1);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    const float d = largest_magnitude(x);
    const float inverse = inverse_or_zero(d);
    std::array<int, 52> numbers{};
    for (int i = 0; i < 256; ++i) {
      const auto [byte, power] = digit_of(i);
      numbers[byte] += (round_away(x[i] * inverse, -1, 1) + 1) * kPowersOf3[4 - power];
    }
    for (int byte = 0; byte < 52; ++byte) b[byte] = static_cast<uint8_t>((numbers[byte] * 256 + 242) / 243);
    store_half(b + 52, d);
  }
};

struct TQ2_0 {
  static constexpr DType kType = DType::kTQ2_0;
  static constexpr int kWeights = 256, kBytes = 66;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b + 64);
    for (int i = 0; i < 256; ++i)
      w[i] = d * static_cast<float>(two_bits(b[32 * (i / 128) + i % 32], i % 128 / 32) - 1);
  }
  static void encode(const float* x, uint8_t* b) {
    const float d = largest_magnitude(x);
    const float inverse = inverse_or_zero(d);
    std::memset(b, 0, 64);
    for (int i = 0; i < 256; ++i)
      b[32 * (i / 128) + i % 32] |=
          static_cast<uint8_t>((round_away(x[i] * inverse, -1, 1) + 1) << 2 * (i % 128 / 32));
    store_half(b + 64, d);
  }
};

}  // namespace

std::span<const Codec> ternary_codecs() {
  static constexpr std::array kCodecs = {codec_of<TQ1_0>(), codec_of<TQ2_0>()};
  return kCodecs;
}

}  // namespace forebay
