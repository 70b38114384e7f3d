/// One scale (and perhaps one minimum) per block of plain integer codes: Q4_0 .. Q8_0, Q1_0, Q2_0, and Q8_K,
/// which files hold only when somebody stored activations.
///
/// The 4- and 5-bit formats share a nibble layout: the low halves of 16 bytes are weights 0..15, the high
/// halves are weights 16..31. The 5-bit formats keep the fifth bits in a u32, bit i for weight i.
#include <algorithm>
#include <array>

#include "quant/block.h"

namespace forebay {
namespace {

int nibble_code(const uint8_t* nibbles, int i) {
  return nibble(nibbles[i % 16], i / 16);
}

int five_bit_code(const uint8_t* high_bits, const uint8_t* nibbles, int i) {
  return nibble_code(nibbles, i) | static_cast<int>(load<uint32_t>(high_bits) >> i & 1u) << 4;
}

void store_nibbles(const std::array<int, 32>& codes, uint8_t* nibbles) {
  for (int i = 0; i < 16; ++i) nibbles[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

void store_fifth_bits(const std::array<int, 32>& codes, uint8_t* high_bits) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(codes[i] >> 4) << i;
  store(high_bits, bits);
}

/// Codes centred on `middle`: the element of largest magnitude gets code 0, so d may be negative.
float centred_codes(const float* x, int middle, std::array<int, 32>& codes) {
  const float d = signed_max({x, 32}) / static_cast<float>(-middle);
  const float inverse = inverse_or_zero(d);
  for (int i = 0; i < 32; ++i)
    codes[i] = truncate(x[i] * inverse + (static_cast<float>(middle) + 0.5f), 0, 2 * middle - 1);
  return d;
}

struct Range {
  float d;
  float minimum;
};

/// Codes counted up from the block's minimum.
Range codes_above_minimum(const float* x, int max_code, std::array<int, 32>& codes) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float d = (*high - *low) / static_cast<float>(max_code);
  const float inverse = inverse_or_zero(d);
  for (int i = 0; i < 32; ++i) codes[i] = truncate((x[i] - *low) * inverse + 0.5f, 0, max_code);
  return {d, *low};
}

struct Q4_0 {
  static constexpr DType kType = DType::kQ4_0;
  static constexpr int kWeights = 32, kBytes = 18;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(nibble_code(b + 2, i) - 8);
  }
  static void encode(const float* x, uint8_t* b) {
    std::array<int, 32> codes;
    store_half(b, centred_codes(x, 8, codes));
    store_nibbles(codes, b + 2);
  }
};

struct Q4_1 {
  static constexpr DType kType = DType::kQ4_1;
  static constexpr int kWeights = 32, kBytes = 20;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b), minimum = load_half(b + 2);
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(nibble_code(b + 4, i)) + minimum;
  }
  static void encode(const float* x, uint8_t* b) {
    std::array<int, 32> codes;
    const Range range = codes_above_minimum(x, 15, codes);
    store_half(b, range.d);
    store_half(b + 2, range.minimum);
    store_nibbles(codes, b + 4);
  }
};

struct Q5_0 {
  static constexpr DType kType = DType::kQ5_0;
  static constexpr int kWeights = 32, kBytes = 22;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(five_bit_code(b + 2, b + 6, i) - 16);
  }
  static void encode(const float* x, uint8_t* b) {
    std::array<int, 32> codes;
    store_half(b, centred_codes(x, 16, codes));
    store_fifth_bits(codes, b + 2);
    store_nibbles(codes, b + 6);
  }
};

struct Q5_1 {
  static constexpr DType kType = DType::kQ5_1;
  static constexpr int kWeights = 32, kBytes = 24;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b), minimum = load_half(b + 2);
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(five_bit_code(b + 4, b + 8, i)) + minimum;
  }
  static void encode(const float* x, uint8_t* b) {
    std::array<int, 32> codes;
    const Range range = codes_above_minimum(x, 31, codes);
    store_half(b, range.d);
    store_half(b + 2, range.minimum);
    store_fifth_bits(codes, b + 4);
    store_nibbles(codes, b + 8);
  }
};

struct Q8_0 {
  static constexpr DType kType = DType::kQ8_0;
  static constexpr int kWeights = 32, kBytes = 34;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(signed_byte(b[2 + i]));
  }
  static void encode(const float* x, uint8_t* b) {
    const float d = std::fabs(signed_max({x, 32})) / 127;
    const float inverse = inverse_or_zero(d);
    store_half(b, d);
    for (int i = 0; i < 32; ++i) b[2 + i] = static_cast<uint8_t>(round_away(x[i] * inverse, -127, 127));
  }
};

/// d is a full float, and sums of 16 codes follow the codes for the min terms of dot products.
struct Q8_K {
  static constexpr DType kType = DType::kQ8_K;
  static constexpr int kWeights = 256, kBytes = 292;

  static void decode(const uint8_t* b, float* w) {
    const auto d = load<float>(b);
    for (int i = 0; i < 256; ++i) w[i] = d * static_cast<float>(signed_byte(b[4 + i]));
  }
  static void encode(const float* x, uint8_t* b) {
    const float largest = signed_max({x, 256});
    const float inverse = largest != 0 ? -127 / largest : 0;
    store(b, inverse_or_zero(inverse));
    for (int run = 0; run < 16; ++run) {
      int sum = 0;
      for (int i = 16 * run; i < 16 * run + 16; ++i) {
        const int q = round_even(inverse * x[i], -128, 127);
        b[4 + i] = static_cast<uint8_t>(q);
        sum += q;
      }
      store(b + 260 + 2 * run, static_cast<int16_t>(sum));
    }
  }
};

/// One sign bit per weight.
struct Q1_0 {
  static constexpr DType kType = DType::kQ1_0;
  static constexpr int kWeights = 128, kBytes = 18;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int i = 0; i < 128; ++i) w[i] = b[2 + i / 8] >> i % 8 & 1 ? d : -d;
  }
  static void encode(const float* x, uint8_t* b) {
    float sum = 0;
    for (int i = 0; i < 128; ++i) sum += std::fabs(x[i]);
    store_half(b, sum / 128);
    std::memset(b + 2, 0, 16);
    for (int i = 0; i < 128; ++i)
      if (x[i] >= 0) b[2 + i / 8] |= static_cast<uint8_t>(1 << i % 8);
  }
};

/// Codes 0..3 are -d, 0, d, 2d; four neighbours share a byte. The encoder never writes code 3.
struct Q2_0 {
  static constexpr DType kType = DType::kQ2_0;
  static constexpr int kWeights = 64, kBytes = 18;

  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int i = 0; i < 64; ++i) w[i] = static_cast<float>(two_bits(b[2 + i / 4], i % 4) - 1) * d;
  }
  static void encode(const float* x, uint8_t* b) {
    const float d = std::fabs(signed_max({x, 64}));
    const float inverse = inverse_or_zero(d);
    store_half(b, d);
    std::memset(b + 2, 0, 16);
    for (int i = 0; i < 64; ++i)
      b[2 + i / 4] |= static_cast<uint8_t>((round_away(x[i] * inverse, -1, 1) + 1) << 2 * (i % 4));
  }
};

}  // namespace

std::span<const Codec> simple_block_codecs() {
  static constexpr std::array kCodecs = {codec_of<Q4_0>(), codec_of<Q4_1>(), codec_of<Q5_0>(),
                                         codec_of<Q5_1>(), codec_of<Q8_0>(), codec_of<Q8_K>(),
                                         codec_of<Q1_0>(), codec_of<Q2_0>()};
  return kCodecs;
}

}  // namespace forebay
