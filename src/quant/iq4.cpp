/// 4-bit codes of a non-uniform table: IQ4_NL (blocks of 32) and IQ4_XS (super-blocks of 256).
#include <algorithm>
#include <array>

#include "quant/block.h"
#include "quant/code_values.h"
#include "quant/scale_search.h"

namespace forebay {
namespace {

// A byte of nibbles holds weights i and i + 16 of a run of 32.
void decode_run(const uint8_t* nibbles, float scale, float* w) {
  for (int i = 0; i < 32; ++i) w[i] = scale * static_cast<float>(kIq4Values[nibble(nibbles[i % 16], i / 16)]);
}

void encode_run(const float* x, float inverse, uint8_t* nibbles) {
  for (int i = 0; i < 16; ++i)
    nibbles[i] = static_cast<uint8_t>(nearest_in_table(kIq4Values, x[i] * inverse) |
                                      nearest_in_table(kIq4Values, x[i + 16] * inverse) << 4);
}

struct IQ4_NL {
  static constexpr DType kType = DType::kIQ4_NL;
  static constexpr int kWeights = 32, kBytes = 18;

  static void decode(const uint8_t* b, float* w) { decode_run(b + 2, load_half(b), w); }

  static void encode(const float* x, uint8_t* b) {
    const float d = fit_table_scan({x, 32}, kIq4Values);
    store_half(b, d);
    encode_run(x, inverse_or_zero(d), b + 2);
  }
};

/// Eight runs of 32 with 6-bit scales, biased by 32: low nibbles in four bytes, top bits in a u16.
struct IQ4_XS {
  static constexpr DType kType = DType::kIQ4_XS;
  static constexpr int kWeights = 256, kBytes = 136;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    const int high_bits = load<uint16_t>(b + 2);
    for (int run = 0; run < 8; ++run) {
      const int scale = nibble(b[4 + run / 2], run % 2) | (high_bits >> 2 * run & 3) << 4;
      decode_run(b + 8 + 16 * run, d * static_cast<float>(scale - 32), w + 32 * run);
    }
  }
  static void encode(const float* x, uint8_t* b) {
    std::array<float, 8> scales;
    for (int run = 0; run < 8; ++run) scales[run] = fit_table_scan({x + 32 * run, 32}, kIq4Values);
    const float d = -signed_max(scales) / 32;
    const float inverse = inverse_or_zero(d);
    store_half(b, d);
    std::memset(b + 2, 0, 6);
    int high_bits = 0;
    for (int run = 0; run < 8; ++run) {
      const int scale = round_even(inverse * scales[run], -32, 31);
      // Codes are chosen for the unrounded d.
      encode_run(x + 32 * run, inverse_or_zero(d * static_cast<float>(scale)), b + 8 + 16 * run);
      b[4 + run / 2] |= static_cast<uint8_t>(((scale + 32) & 15) << 4 * (run % 2));
      high_bits |= (scale + 32) >> 4 << 2 * run;
    }
    store(b + 2, static_cast<uint16_t>(high_bits));
  }
};

}  // namespace

std::span<const Codec> iq4_codecs() {
  static constexpr std::array kCodecs = {codec_of<IQ4_NL>(), codec_of<IQ4_XS>()};
  return kCodecs;
}

}  // namespace forebay
