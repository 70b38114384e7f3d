/// 4-bit floats (E2M1) under an 8-bit float scale: MXFP4 and NVFP4. The table holds doubled values, so the
/// scales here are half of what their bytes say.
#include <algorithm>
#include <array>

#include "quant/block.h"
#include "quant/code_values.h"

namespace forebay {
namespace {

/// 2^(e - 128); 255 is not special.
float half_e8m0(int e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

/// Half of the unsigned E4M3 number; bit 7 counts only for 0x7f, the NaN that stands for 0.
float half_ue4m3(int byte) {
  if (byte == 0x7f) return 0;
  // Shifted into a half, the fields fit and the exponent's bias is 15 where E4M3 has 7.
  return f32_from_f16(static_cast<uint16_t>((byte & 0x7f) << 7)) * 0x1p7f;
}

/// Rounds half up; from 256 on everything is the largest, 448.
uint8_t ue4m3_from_f32(float value) {
  constexpr uint8_t kLargest = 0x7e;
  if (!(value > 0)) return 0;
  if (value >= 256) return kLargest;
  if (value < 0x1p-6f) return static_cast<uint8_t>(std::min(7, static_cast<int>(value * 512 + 0.5f)));
  // Keep three mantissa bits; a carry moves into the exponent by itself. f32's bias is 127, E4M3's is 7.
  const uint32_t rounded = (std::bit_cast<uint32_t>(value) + (1u << 19)) >> 20;
  const uint32_t byte = rounded - (120u << 3);
  return byte >= 15u << 3 ? kLargest : static_cast<uint8_t>(byte);
}

/// The code whose value is nearest to x; the lowest on ties.
int nearest_code(float x, float scale) {
  int best = 0;
  float best_error = std::fabs(kFp4Values[0] * scale - x);
  for (int code = 1; code < 16; ++code) {
    const float error = std::fabs(kFp4Values[code] * scale - x);
    if (error < best_error) {
      best = code;
      best_error = error;
    }
  }
  return best;
}

/// A byte of nibbles holds weights i and i + 16.
struct MXFP4 {
  static constexpr DType kType = DType::kMXFP4;
  static constexpr int kWeights = 32, kBytes = 17;

  static void decode(const uint8_t* b, float* w) {
    const float scale = half_e8m0(b[0]);
    for (int i = 0; i < 32; ++i) w[i] = scale * kFp4Values[nibble(b[1 + i % 16], i / 16)];
  }
  static void encode(const float* x, uint8_t* b) {
    const float largest = std::fabs(signed_max({x, 32}));
    // 6, the largest code, is 1.5 x 2^2. The exponent is exact here, where a rounded log2 would not be.
    const int e = largest != 0 ? std::max(0, std::ilogb(largest) - 2 + 127) : 0;
    const float scale = half_e8m0(e);
    b[0] = static_cast<uint8_t>(e);
    for (int i = 0; i < 16; ++i)
      b[1 + i] = static_cast<uint8_t>(nearest_code(x[i], scale) | nearest_code(x[i + 16], scale) << 4);
  }
};

/// Four runs of 16 with a scale each; a byte of nibbles holds weights i and i + 8 of its run. The per-tensor
/// factor that goes with the format is a tensor of its own in a file.
struct NVFP4 {
  static constexpr DType kType = DType::kNVFP4;
  static constexpr int kWeights = 64, kBytes = 36;

  static void decode(const uint8_t* b, float* w) {
    for (int i = 0; i < 64; ++i) {
      const int run = i / 16;
      w[i] = half_ue4m3(b[run]) * kFp4Values[nibble(b[4 + 8 * run + i % 8], i % 16 / 8)];
    }
  }
  static void encode(const float* x, uint8_t* b) {
    for (int run = 0; run < 4; ++run, x += 16) {
      b[run] = ue4m3_from_f32(std::fabs(signed_max({x, 16})) / 6);
      const float scale = half_ue4m3(b[run]);
      for (int i = 0; i < 8; ++i)
        b[4 + 8 * run + i] =
            static_cast<uint8_t>(nearest_code(x[i], scale) | nearest_code(x[i + 8], scale) << 4);
    }
  }
};

}  // namespace

std::span<const Codec> fp4_codecs() {
  static constexpr std::array kCodecs = {codec_of<MXFP4>(), codec_of<NVFP4>()};
  return kCodecs;
}

}  // namespace forebay
