/// Octets of weights from codebooks of magnitudes, with signs apart: IQ2_XXS, IQ2_XS, IQ2_S. Read only: they
/// cannot be made well without measured importances.
///
/// g is the group of 32 weights, l the octet in it, j the weight in the octet.
#include <array>

#include "quant/block.h"
#include "quant/iq_tables.h"

namespace forebay {
namespace {

float scale_of(float d, int code) {
  return d * (0.5f + static_cast<float>(code)) * 0.25f;
}

void decode_octet(uint64_t row, uint8_t signs, float scale, float* w) {
  for (int j = 0; j < 8; ++j) {
    const float magnitude = scale * static_cast<float>(grid_value(row, j));
    w[j] = signs >> j & 1 ? -magnitude : magnitude;
  }
}

/// Per group four row indices, then a word: 4 x 7 bits of signs and a 4-bit scale.
struct IQ2_XXS {
  static constexpr DType kType = DType::kIQ2_XXS;
  static constexpr int kWeights = 256, kBytes = 66;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const uint8_t* group = b + 2 + 8 * g;
      const auto word = load<uint32_t>(group + 4);
      const float scale = scale_of(d, static_cast<int>(word >> 28));
      for (int l = 0; l < 4; ++l)
        decode_octet(kIq2xxsGrid.rows[group[l]], even_sign_mask(word >> 7 * l & 127), scale,
                     w + 32 * g + 8 * l);
    }
  }
};

/// Per octet 9 bits of row index and 7 of signs; per group a byte of two scales.
struct IQ2_XS {
  static constexpr DType kType = DType::kIQ2_XS;
  static constexpr int kWeights = 256, kBytes = 74;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int octet = 0; octet < 32; ++octet) {
      const int g = octet / 4, l = octet % 4;
      const auto word = load<uint16_t>(b + 2 + 2 * octet);
      const float scale = scale_of(d, nibble(b[66 + g], l / 2));
      decode_octet(kIq2xsGrid.rows[word & 511], even_sign_mask(word >> 9), scale, w + 8 * octet);
    }
  }
};

/// Row indices of 10 bits (the high two in a byte per group), whole sign masks, scales as IQ2_XS.
struct IQ2_S {
  static constexpr DType kType = DType::kIQ2_S;
  static constexpr int kWeights = 256, kBytes = 82;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int octet = 0; octet < 32; ++octet) {
      const int g = octet / 4, l = octet % 4;
      const int index = b[2 + octet] | two_bits(b[66 + g], l) << 8;
      const float scale = scale_of(d, nibble(b[74 + g], l / 2));
      decode_octet(kIq2sGrid.rows[index], b[34 + octet], scale, w + 8 * octet);
    }
  }
};

}  // namespace

std::span<const Codec> iq2_codecs() {
  static constexpr std::array kCodecs = {codec_of<IQ2_XXS>(), codec_of<IQ2_XS>(), codec_of<IQ2_S>()};
  return kCodecs;
}

}  // namespace forebay
