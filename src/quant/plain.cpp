/// F32, F16, BF16: one element is one block.
#include <array>

#include "quant/block.h"

namespace forebay {
namespace {

struct F32 {
  static constexpr DType kType = DType::kF32;
  static constexpr int kWeights = 1, kBytes = 4;
  static void decode(const uint8_t* b, float* w) { std::memcpy(w, b, sizeof *w); }
  static void encode(const float* x, uint8_t* b) { std::memcpy(b, x, sizeof *x); }
};

struct F16 {
  static constexpr DType kType = DType::kF16;
  static constexpr int kWeights = 1, kBytes = 2;
  static void decode(const uint8_t* b, float* w) { *w = load_half(b); }
  static void encode(const float* x, uint8_t* b) { store_half(b, *x); }
};

struct BF16 {
  static constexpr DType kType = DType::kBF16;
  static constexpr int kWeights = 1, kBytes = 2;
  static void decode(const uint8_t* b, float* w) { *w = f32_from_bf16(load<uint16_t>(b)); }
  static void encode(const float* x, uint8_t* b) { store(b, bf16_from_f32(*x)); }
};

}  // namespace

std::span<const Codec> plain_codecs() {
  static constexpr std::array kCodecs = {codec_of<F32>(), codec_of<F16>(), codec_of<BF16>()};
  return kCodecs;
}

}  // namespace forebay
