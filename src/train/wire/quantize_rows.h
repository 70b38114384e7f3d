/// Rows to codes and back on the processor: what quantizer.cpp says with tensors, to the bit, in one pass
/// over each group. No torch here.
#pragma once

#include <cstdint>
#include <optional>

namespace forebay::train {

struct LevelCode {
  int bits = 4;        // 1..8
  int64_t group = 32;  // coordinates that share a scale; >= 1
};

/// x [width] -> codes [width], scales [ceil(width / group)] (bf16 bits). Rounds at random with the uniforms
/// of the stream `noise`, without one to the nearest. Where a scale is no finite number, codes are 0.
void quantize_row(const float* x, int64_t width, const LevelCode& code, std::optional<uint64_t> noise,
                  uint8_t* codes, uint16_t* scales);
/// And back: [width].
void dequantize_row(const uint8_t* codes, const uint16_t* scales, int64_t width, const LevelCode& code,
                    float* x);

/// n codes of 1..7 bits without gaps, as pack.h says; and back.
void pack_codes(const uint8_t* codes, int64_t n, int bits, uint8_t* packed);
void unpack_codes(const uint8_t* packed, int64_t n, int bits, uint8_t* codes);

}  // namespace forebay::train
