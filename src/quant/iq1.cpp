/// Octets of weights from one ternary codebook, shifted by an eighth up or down: IQ1_S, IQ1_M. Read only, as
/// iq2.cpp. w = scale * (row[j] + shift).
#include <array>

#include "quant/block.h"
#include "quant/iq_tables.h"

namespace forebay {
namespace {

void decode_octet(int index, bool shift_down, float scale, float* w) {
  const float shift = shift_down ? -0.125f : 0.125f;
  for (int j = 0; j < 8; ++j)
    w[j] = scale * (static_cast<float>(grid_value(kIq1Grid.rows[index], j)) + shift);
}

/// Per group of 32 weights a word: four times three high index bits, a 3-bit scale, the shift's sign.
struct IQ1_S {
  static constexpr DType kType = DType::kIQ1_S;
  static constexpr int kWeights = 256, kBytes = 50;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int octet = 0; octet < 32; ++octet) {
      const auto word = load<uint16_t>(b + 34 + 2 * (octet / 4));
      const int index = b[2 + octet] | (word >> 3 * (octet % 4) & 7) << 8;
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      decode_octet(index, (word & 0x8000) != 0, scale, w + 8 * octet);
    }
  }
};

/// Per octet a nibble: three high index bits and the shift's sign. Four words at the end hold four 3-bit
/// scales each, of runs of 16, and in their top nibbles the half-precision d.
struct IQ1_M {
  static constexpr DType kType = DType::kIQ1_M;
  static constexpr int kWeights = 256, kBytes = 56;

  static void decode(const uint8_t* b, float* w) {
    int half = 0;
    for (int k = 0; k < 4; ++k) half |= (load<uint16_t>(b + 48 + 2 * k) >> 12) << 4 * k;
    const float d = f32_from_f16(static_cast<uint16_t>(half));
    for (int octet = 0; octet < 32; ++octet) {
      const int run = octet / 2;
      const int scale_code = load<uint16_t>(b + 48 + 2 * (run / 4)) >> 3 * (run % 4) & 7;
      const int high = nibble(b[32 + octet / 2], octet % 2);
      const float scale = d * static_cast<float>(2 * scale_code + 1);
      decode_octet(b[octet] | (high & 7) << 8, (high & 8) != 0, scale, w + 8 * octet);
    }
  }
};

}  // namespace

std::span<const Codec> iq1_codecs() {
  static constexpr std::array kCodecs = {codec_of<IQ1_S>(), codec_of<IQ1_M>()};
  return kCodecs;
}

}  // namespace forebay
