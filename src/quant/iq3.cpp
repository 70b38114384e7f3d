/// Quads of weights from codebooks of magnitudes, with signs apart: IQ3_XXS, IQ3_S. Read only, as iq2.cpp.
#include <array>

#include "quant/block.h"
#include "quant/iq_tables.h"

namespace forebay {
namespace {

/// Signs are bits 0..3 of `signs`.
void decode_quad(uint32_t row, int signs, float scale, float* w) {
  for (int j = 0; j < 4; ++j) {
    const float magnitude = scale * static_cast<float>(grid_value(row, j));
    w[j] = signs >> j & 1 ? -magnitude : magnitude;
  }
}

/// 64 row indices, then per group of 32 weights a word: 4 x 7 bits of signs and a 4-bit scale.
struct IQ3_XXS {
  static constexpr DType kType = DType::kIQ3_XXS;
  static constexpr int kWeights = 256, kBytes = 98;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int quad = 0; quad < 64; ++quad) {
      const auto word = load<uint32_t>(b + 66 + 4 * (quad / 8));
      const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
      const int octet = quad / 2 % 4;
      const int signs = even_sign_mask(word >> 7 * octet & 127) >> 4 * (quad % 2);
      decode_quad(kIq3xxsGrid.rows[b[2 + quad]], signs, scale, w + 4 * quad);
    }
  }
};

/// Row indices of 9 bits (the ninth ones in a byte per group of 32), whole sign masks, 4-bit scales.
struct IQ3_S {
  static constexpr DType kType = DType::kIQ3_S;
  static constexpr int kWeights = 256, kBytes = 110;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int quad = 0; quad < 64; ++quad) {
      const int g = quad / 8;
      const int index = b[2 + quad] | (b[66 + g] >> quad % 8 & 1) << 8;
      const float scale = d * static_cast<float>(1 + 2 * nibble(b[106 + g / 2], g % 2));
      const int signs = b[74 + quad / 2] >> 4 * (quad % 2);
      decode_quad(kIq3sGrid.rows[index], signs, scale, w + 4 * quad);
    }
  }
};

}  // namespace

std::span<const Codec> iq3_codecs() {
  static constexpr std::array kCodecs = {codec_of<IQ3_XXS>(), codec_of<IQ3_S>()};
  return kCodecs;
}

}  // namespace forebay
