// Eight weights at a time: codes widened to 32-bit lanes, then the reference's float operations in its order.
// Where a code has at most three bits, the run's possible weights are computed once and looked up.
// Nothing here may be shared with files built for older processors: helpers stay in the unnamed namespace.
#include "kernels/decode_row_avx2.h"

#include <cstring>

#include "core/vectors.h"
#include "kernels/unaligned.h"
#include "quant/code_values.h"
#include "quant/iq_tables.h"

namespace forebay {
namespace {

float half(uint16_t bits) {
  return _cvtsh_ss(bits);
}
float load_half(const uint8_t* p) {
  return half(load<uint16_t>(p));
}

__m256i lanes(int value) {
  return _mm256_set1_epi32(value);
}
__m256 lanes(float value) {
  return _mm256_set1_ps(value);
}
__m256 negated(__m256 v) {
  return _mm256_xor_ps(v, lanes(-0.0f));
}

/// Eight bytes to eight lanes, zero- or sign-extended.
__m256i widen(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadu_si64(p));
}
__m256i widen_signed(const uint8_t* p) {
  return _mm256_cvtepi8_epi32(_mm_loadu_si64(p));
}
__m256i widen(uint64_t bytes) {
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)));
}
__m256i widen_signed(uint64_t bytes) {
  return _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)));
}

/// Bits [shift, shift + width) of each lane.
__m256i field(__m256i v, int shift, int width) {
  return _mm256_and_si256(_mm256_srli_epi32(v, shift), lanes((1 << width) - 1));
}
/// low | high << shift
__m256i joined(__m256i low, __m256i high, int shift) {
  return _mm256_or_si256(low, _mm256_slli_epi32(high, shift));
}

/// w[0..8) = scale * q, or scale * q + offset.
void put(float* w, __m256i q, __m256 scale) {
  _mm256_storeu_ps(w, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(q)));
}
void put(float* w, __m256i q, __m256 scale, __m256 offset) {
  _mm256_storeu_ps(w, _mm256_add_ps(_mm256_mul_ps(scale, _mm256_cvtepi32_ps(q)), offset));
}

/// w[0..16) = scale * q for 16 signed bytes.
void put_bytes(float* w, __m128i q, __m256 scale) {
  put(w, _mm256_cvtepi8_epi32(q), scale);
  put(w + 8, _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(q, q)), scale);
}

// ---- plain types ----

void decode_f16(const std::byte* blocks, int64_t n, float* out) {
  const auto* b = reinterpret_cast<const uint8_t*>(blocks);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 2 * i))));
  for (; i < n; ++i) out[i] = load_half(b + 2 * i);
}

void decode_bf16(const std::byte* blocks, int64_t n, float* out) {
  const auto* b = reinterpret_cast<const uint8_t*>(blocks);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 2 * i)));
    _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)));
  }
  for (; i < n; ++i) {
    const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(b + 2 * i)) << 16;
    std::memcpy(out + i, &bits, sizeof bits);
  }
}

// ---- simple blocks; layouts in quant/simple_blocks.cpp ----

struct Q4_0 {
  static constexpr int kWeights = 32, kBytes = 18;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b));
    for (int i = 0; i < 16; i += 8) {
      const __m256i v = widen(b + 2 + i);
      put(w + i, _mm256_sub_epi32(field(v, 0, 4), lanes(8)), d);
      put(w + 16 + i, _mm256_sub_epi32(_mm256_srli_epi32(v, 4), lanes(8)), d);
    }
  }
};

struct Q4_1 {
  static constexpr int kWeights = 32, kBytes = 20;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b)), minimum = lanes(load_half(b + 2));
    for (int i = 0; i < 16; i += 8) {
      const __m256i v = widen(b + 4 + i);
      put(w + i, field(v, 0, 4), d, minimum);
      put(w + 16 + i, _mm256_srli_epi32(v, 4), d, minimum);
    }
  }
};

/// Bits shift .. shift + 7 of `high_bits` as the fifth bits of eight codes.
__m256i fifth_bits(uint32_t high_bits, int shift) {
  const __m256i bits = _mm256_srlv_epi32(lanes(static_cast<int>(high_bits >> shift)),
                                         _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return _mm256_slli_epi32(field(bits, 0, 1), 4);
}

struct Q5_0 {
  static constexpr int kWeights = 32, kBytes = 22;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b));
    const auto high_bits = load<uint32_t>(b + 2);
    for (int i = 0; i < 16; i += 8) {
      const __m256i v = widen(b + 6 + i);
      const __m256i low = _mm256_or_si256(field(v, 0, 4), fifth_bits(high_bits, i));
      const __m256i high = _mm256_or_si256(_mm256_srli_epi32(v, 4), fifth_bits(high_bits, i + 16));
      put(w + i, _mm256_sub_epi32(low, lanes(16)), d);
      put(w + 16 + i, _mm256_sub_epi32(high, lanes(16)), d);
    }
  }
};

struct Q5_1 {
  static constexpr int kWeights = 32, kBytes = 24;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b)), minimum = lanes(load_half(b + 2));
    const auto high_bits = load<uint32_t>(b + 4);
    for (int i = 0; i < 16; i += 8) {
      const __m256i v = widen(b + 8 + i);
      put(w + i, _mm256_or_si256(field(v, 0, 4), fifth_bits(high_bits, i)), d, minimum);
      put(w + 16 + i, _mm256_or_si256(_mm256_srli_epi32(v, 4), fifth_bits(high_bits, i + 16)), d, minimum);
    }
  }
};

struct Q8_0 {
  static constexpr int kWeights = 32, kBytes = 34;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b));
    for (int i = 0; i < 32; i += 8) put(w + i, widen_signed(b + 2 + i), d);
  }
};

/// Four possible weights: the permutation looks at the two lowest bits of each lane.
struct Q2_0 {
  static constexpr int kWeights = 64, kBytes = 18;
  static void decode(const uint8_t* b, float* w) {
    const __m256 weights = _mm256_mul_ps(_mm256_setr_ps(-1, 0, 1, 2, -1, 0, 1, 2), lanes(load_half(b)));
    const __m256i low = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    const __m256i high = _mm256_setr_epi32(16, 18, 20, 22, 24, 26, 28, 30);
    for (int i = 0; i < 64; i += 16) {
      const __m256i codes = lanes(load<int32_t>(b + 2 + i / 4));
      _mm256_storeu_ps(w + i, _mm256_permutevar_ps(weights, _mm256_srlv_epi32(codes, low)));
      _mm256_storeu_ps(w + i + 8, _mm256_permutevar_ps(weights, _mm256_srlv_epi32(codes, high)));
    }
  }
};

// ---- K-quants; layouts in quant/k_affine.cpp and quant/k_symmetric.cpp ----

struct Q2_K {
  static constexpr int kWeights = 256, kBytes = 84;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b + 80)), dmin = lanes(load_half(b + 82));
    alignas(32) float scales[16], offsets[16];
    for (int run = 0; run < 16; run += 8) {
      const __m256i pairs = widen(b + run);
      put(scales + run, field(pairs, 0, 4), d);
      _mm256_store_ps(offsets + run,
                      negated(_mm256_mul_ps(dmin, _mm256_cvtepi32_ps(_mm256_srli_epi32(pairs, 4)))));
    }
    __m256 weights[16];  // of each run, by code, twice
    const __m256 codes = _mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3);
    for (int run = 0; run < 16; ++run)
      weights[run] = _mm256_add_ps(_mm256_mul_ps(lanes(scales[run]), codes), lanes(offsets[run]));
    for (int half = 0; half < 2; ++half)
      for (int c = 0; c < 32; c += 8) {
        const __m256i v = widen(b + 16 + 32 * half + c);
        for (int t = 0; t < 4; ++t)
          _mm256_storeu_ps(
              w + 128 * half + 32 * t + c,
              _mm256_permutevar_ps(weights[8 * half + 2 * t + c / 16], _mm256_srli_epi32(v, 2 * t)));
      }
  }
};

struct Q3_K {
  static constexpr int kWeights = 256, kBytes = 110;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b + 108));
    // Top bits of scale j: pair j / 4 of byte j % 4.
    const auto low = load<uint64_t>(b + 96);
    const uint64_t tops = load<uint32_t>(b + 104);
    constexpr uint64_t kNibbles = 0x0f0f0f0f0f0f0f0f, kPairs = 0x0303030303030303;
    const uint64_t tops_low = (tops | tops >> 2 << 32) & kPairs;
    const uint64_t tops_high = (tops >> 4 | tops >> 6 << 32) & kPairs;
    alignas(32) float scales[16];
    put(scales, _mm256_sub_epi32(widen((low & kNibbles) | tops_low << 4), lanes(32)), d);
    put(scales + 8, _mm256_sub_epi32(widen((low >> 4 & kNibbles) | tops_high << 4), lanes(32)), d);
    __m256 weights[16];  // of each run, by the code with its high bit on top
    const __m256 codes = _mm256_setr_ps(-4, -3, -2, -1, 0, 1, 2, 3);
    for (int run = 0; run < 16; ++run) weights[run] = _mm256_mul_ps(lanes(scales[run]), codes);
    for (int half = 0; half < 2; ++half)
      for (int c = 0; c < 32; c += 8) {
        const __m256i high_bits = widen(b + c);
        const __m256i v = widen(b + 32 + 32 * half + c);
        for (int t = 0; t < 4; ++t) {
          const __m256i q = joined(field(v, 2 * t, 2), field(high_bits, 4 * half + t, 1), 2);
          _mm256_storeu_ps(w + 128 * half + 32 * t + c,
                           _mm256_permutevar8x32_ps(weights[8 * half + 2 * t + c / 16], q));
        }
      }
  }
};

/// d * scale and -(dmin * minimum) of the eight runs of a Q4_K or Q5_K block.
struct RunScales {
  alignas(32) float scales[8];
  alignas(32) float offsets[8];

  explicit RunScales(const uint8_t* b) {
    const auto early_scales = load<uint32_t>(b + 4), early_minima = load<uint32_t>(b + 8),
               late = load<uint32_t>(b + 12);
    constexpr uint32_t kSixBits = 0x3f3f3f3f, kNibbles = 0x0f0f0f0f, kPairs = 0x03030303;
    const uint32_t late_scales = (late & kNibbles) | (early_scales >> 6 & kPairs) << 4;
    const uint32_t late_minima = (late >> 4 & kNibbles) | (early_minima >> 6 & kPairs) << 4;
    const __m256i q_scales = widen((early_scales & kSixBits) | static_cast<uint64_t>(late_scales) << 32);
    const __m256i q_minima = widen((early_minima & kSixBits) | static_cast<uint64_t>(late_minima) << 32);
    put(scales, q_scales, lanes(load_half(b)));
    _mm256_store_ps(offsets, negated(_mm256_mul_ps(lanes(load_half(b + 2)), _mm256_cvtepi32_ps(q_minima))));
  }
};

struct Q4_K {
  static constexpr int kWeights = 256, kBytes = 144;
  static void decode(const uint8_t* b, float* w) {
    const RunScales runs(b);
    for (int run = 0; run < 8; run += 2) {
      const __m256 low_scale = lanes(runs.scales[run]), low_offset = lanes(runs.offsets[run]);
      const __m256 high_scale = lanes(runs.scales[run + 1]), high_offset = lanes(runs.offsets[run + 1]);
      for (int c = 0; c < 32; c += 8) {
        const __m256i v = widen(b + 16 + 16 * run + c);
        put(w + 32 * run + c, field(v, 0, 4), low_scale, low_offset);
        put(w + 32 * run + 32 + c, _mm256_srli_epi32(v, 4), high_scale, high_offset);
      }
    }
  }
};

struct Q5_K {
  static constexpr int kWeights = 256, kBytes = 176;
  static void decode(const uint8_t* b, float* w) {
    const RunScales runs(b);
    for (int run = 0; run < 8; run += 2) {
      const __m256 low_scale = lanes(runs.scales[run]), low_offset = lanes(runs.offsets[run]);
      const __m256 high_scale = lanes(runs.scales[run + 1]), high_offset = lanes(runs.offsets[run + 1]);
      for (int c = 0; c < 32; c += 8) {
        const __m256i v = widen(b + 48 + 16 * run + c);
        const __m256i fifth = widen(b + 16 + c);
        put(w + 32 * run + c, joined(field(v, 0, 4), field(fifth, run, 1), 4), low_scale, low_offset);
        put(w + 32 * run + 32 + c, joined(_mm256_srli_epi32(v, 4), field(fifth, run + 1, 1), 4), high_scale,
            high_offset);
      }
    }
  }
};

struct Q6_K {
  static constexpr int kWeights = 256, kBytes = 210;
  static void decode(const uint8_t* b, float* w) {
    const __m256 d = lanes(load_half(b + 208));
    alignas(32) float scales[16];
    put(scales, widen_signed(b + 192), d);
    put(scales + 8, widen_signed(b + 200), d);
    const __m256i middle = lanes(32);
    for (int half = 0; half < 2; ++half)
      for (int c = 0; c < 32; c += 8) {
        const __m256i low_0 = widen(b + 64 * half + c), low_1 = widen(b + 64 * half + 32 + c);
        const __m256i high = widen(b + 128 + 32 * half + c);
        const __m256i q[4] = {joined(field(low_0, 0, 4), field(high, 0, 2), 4),
                              joined(field(low_1, 0, 4), field(high, 2, 2), 4),
                              joined(_mm256_srli_epi32(low_0, 4), field(high, 4, 2), 4),
                              joined(_mm256_srli_epi32(low_1, 4), field(high, 6, 2), 4)};
        for (int t = 0; t < 4; ++t)
          put(w + 128 * half + 32 * t + c, _mm256_sub_epi32(q[t], middle),
              lanes(scales[8 * half + 2 * t + c / 16]));
      }
  }
};

// ---- code tables; layouts in quant/iq4.cpp and quant/fp4.cpp ----

__m128i load_values(const int8_t* values) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
}

/// 16 bytes of nibbles to the values of their codes: low halves first.
void put_nibble_run(const uint8_t* nibbles, __m128i values, float scale, float* w) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(nibbles));
  const __m128i mask = _mm_set1_epi8(15);
  put_bytes(w, _mm_shuffle_epi8(values, _mm_and_si128(v, mask)), lanes(scale));
  put_bytes(w + 16, _mm_shuffle_epi8(values, _mm_and_si128(_mm_srli_epi16(v, 4), mask)), lanes(scale));
}

struct IQ4_NL {
  static constexpr int kWeights = 32, kBytes = 18;
  static void decode(const uint8_t* b, float* w) {
    put_nibble_run(b + 2, load_values(kIq4Values), load_half(b), w);
  }
};

struct IQ4_XS {
  static constexpr int kWeights = 256, kBytes = 136;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    const __m128i values = load_values(kIq4Values);
    const int high_bits = load<uint16_t>(b + 2);
    for (int run = 0; run < 8; ++run) {
      const int scale = (b[4 + run / 2] >> 4 * (run % 2) & 15) | (high_bits >> 2 * run & 3) << 4;
      put_nibble_run(b + 8 + 16 * run, values, d * static_cast<float>(scale - 32), w + 32 * run);
    }
  }
};

struct MXFP4 {
  static constexpr int kWeights = 32, kBytes = 17;
  static void decode(const uint8_t* b, float* w) {
    const uint32_t e = b[0];
    const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;  // 2^(e - 128)
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    put_nibble_run(b + 1, load_values(kFp4Values), scale, w);
  }
};

struct NVFP4 {
  static constexpr int kWeights = 64, kBytes = 36;
  static void decode(const uint8_t* b, float* w) {
    const __m128i values = load_values(kFp4Values);
    for (int run = 0; run < 4; ++run) {
      // An E4M3 number in the place of a half's fields is 2^-8 of itself.
      const auto bits = static_cast<uint16_t>(b[run] == 0x7f ? 0 : (b[run] & 0x7f) << 7);
      const auto v = load<uint64_t>(b + 4 + 8 * run);
      const __m128i codes = _mm_set_epi64x(static_cast<int64_t>(v >> 4), static_cast<int64_t>(v));
      const __m128i q = _mm_shuffle_epi8(values, _mm_and_si128(codes, _mm_set1_epi8(15)));
      put_bytes(w + 16 * run, q, lanes(half(bits) * 0x1p7f));
    }
  }
};

// ---- codebooks; layouts in quant/iq1.cpp, iq2.cpp, iq3.cpp ----

/// For each mask of eight signs the bytes +-1, element j in byte j.
template <size_t kRows>
struct Signs {
  uint64_t rows[kRows];
};
template <size_t kRows, typename MaskOf>
constexpr Signs<kRows> make_signs(MaskOf mask_of) {
  Signs<kRows> signs{};
  for (uint32_t i = 0; i < kRows; ++i)
    for (int j = 0; j < 8; ++j) signs.rows[i] |= (mask_of(i) >> j & 1 ? 0xffull : 0x01ull) << 8 * j;
  return signs;
}
constexpr auto kSigns = make_signs<256>([](uint32_t mask) { return mask; });
constexpr auto kEvenSigns = make_signs<128>([](uint32_t seven_signs) { return even_sign_mask(seven_signs); });

/// Eight magnitudes with signs.
void put_octet(float* w, uint64_t magnitudes, uint64_t signs, __m256 scale) {
  const __m128i q = _mm_sign_epi8(_mm_cvtsi64_si128(static_cast<int64_t>(magnitudes)),
                                  _mm_cvtsi64_si128(static_cast<int64_t>(signs)));
  put(w, _mm256_cvtepi8_epi32(q), scale);
}

__m256 iq2_scale(float d, int code) {
  return lanes(d * (0.5f + static_cast<float>(code)) * 0.25f);
}

struct IQ2_XXS {
  static constexpr int kWeights = 256, kBytes = 66;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const uint8_t* group = b + 2 + 8 * g;
      const auto word = load<uint32_t>(group + 4);
      const __m256 scale = iq2_scale(d, static_cast<int>(word >> 28));
      for (int l = 0; l < 4; ++l)
        put_octet(w + 32 * g + 8 * l, kIq2xxsGrid.rows[group[l]], kEvenSigns.rows[word >> 7 * l & 127],
                  scale);
    }
  }
};

struct IQ2_XS {
  static constexpr int kWeights = 256, kBytes = 74;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const __m256 scales[2] = {iq2_scale(d, b[66 + g] & 15), iq2_scale(d, b[66 + g] >> 4)};
      for (int l = 0; l < 4; ++l) {
        const int word = load<uint16_t>(b + 2 + 8 * g + 2 * l);
        put_octet(w + 32 * g + 8 * l, kIq2xsGrid.rows[word & 511], kEvenSigns.rows[word >> 9], scales[l / 2]);
      }
    }
  }
};

struct IQ2_S {
  static constexpr int kWeights = 256, kBytes = 82;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const __m256 scales[2] = {iq2_scale(d, b[74 + g] & 15), iq2_scale(d, b[74 + g] >> 4)};
      for (int l = 0; l < 4; ++l) {
        const int octet = 4 * g + l;
        const int index = b[2 + octet] | (b[66 + g] >> 2 * l & 3) << 8;
        put_octet(w + 8 * octet, kIq2sGrid.rows[index], kSigns.rows[b[34 + octet]], scales[l / 2]);
      }
    }
  }
};

struct IQ3_XXS {
  static constexpr int kWeights = 256, kBytes = 98;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const auto word = load<uint32_t>(b + 66 + 4 * g);
      const __m256 scale = lanes(d * (0.5f + static_cast<float>(word >> 28)) * 0.5f);
      for (int l = 0; l < 4; ++l) {
        const uint8_t* quads = b + 2 + 8 * g + 2 * l;
        const uint64_t row = kIq3xxsGrid.rows[quads[0]] | static_cast<uint64_t>(kIq3xxsGrid.rows[quads[1]])
                                                              << 32;
        put_octet(w + 32 * g + 8 * l, row, kEvenSigns.rows[word >> 7 * l & 127], scale);
      }
    }
  }
};

struct IQ3_S {
  static constexpr int kWeights = 256, kBytes = 110;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const int scale_code = b[106 + g / 2] >> 4 * (g % 2) & 15;
      const __m256 scale = lanes(d * static_cast<float>(1 + 2 * scale_code));
      const int ninth_bits = b[66 + g];
      for (int l = 0; l < 4; ++l) {
        const uint8_t* quads = b + 2 + 8 * g + 2 * l;
        const int first = quads[0] | (ninth_bits >> 2 * l & 1) << 8;
        const int second = quads[1] | (ninth_bits >> (2 * l + 1) & 1) << 8;
        const uint64_t row = kIq3sGrid.rows[first] | static_cast<uint64_t>(kIq3sGrid.rows[second]) << 32;
        put_octet(w + 32 * g + 8 * l, row, kSigns.rows[b[74 + 4 * g + l]], scale);
      }
    }
  }
};

/// Eight ternary values, shifted.
void put_shifted_octet(float* w, int index, bool shift_down, __m256 scale) {
  const __m256 shift = lanes(shift_down ? -0.125f : 0.125f);
  const __m256 values = _mm256_add_ps(_mm256_cvtepi32_ps(widen_signed(kIq1Grid.rows[index])), shift);
  _mm256_storeu_ps(w, _mm256_mul_ps(scale, values));
}

struct IQ1_S {
  static constexpr int kWeights = 256, kBytes = 50;
  static void decode(const uint8_t* b, float* w) {
    const float d = load_half(b);
    for (int g = 0; g < 8; ++g) {
      const int word = load<uint16_t>(b + 34 + 2 * g);
      const __m256 scale = lanes(d * static_cast<float>(2 * (word >> 12 & 7) + 1));
      for (int l = 0; l < 4; ++l)
        put_shifted_octet(w + 32 * g + 8 * l, b[2 + 4 * g + l] | (word >> 3 * l & 7) << 8,
                          (word & 0x8000) != 0, scale);
    }
  }
};

struct IQ1_M {
  static constexpr int kWeights = 256, kBytes = 56;
  static void decode(const uint8_t* b, float* w) {
    const auto words = load<uint64_t>(b + 48);
    const float d = half(static_cast<uint16_t>((words >> 12 & 0xf) | (words >> 24 & 0xf0) |
                                               (words >> 36 & 0xf00) | (words >> 48 & 0xf000)));
    for (int run = 0; run < 16; ++run) {
      const int scale_code = static_cast<int>(words >> (16 * (run / 4) + 3 * (run % 4)) & 7);
      const __m256 scale = lanes(d * static_cast<float>(2 * scale_code + 1));
      const int high = b[32 + run];  // a nibble for each of the run's two octets
      put_shifted_octet(w + 16 * run, b[2 * run] | (high & 7) << 8, (high & 8) != 0, scale);
      put_shifted_octet(w + 16 * run + 8, b[2 * run + 1] | (high >> 4 & 7) << 8, (high & 0x80) != 0, scale);
    }
  }
};

template <typename Format>
void decode_blocks(const std::byte* blocks, int64_t n, float* out) {
  const auto* b = reinterpret_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += Format::kWeights, b += Format::kBytes) Format::decode(b, out + i);
}

}  // namespace

DecodeFn find_decoder_avx2(DType type) {
  switch (type) {
    case DType::kF16:
      return decode_f16;
    case DType::kBF16:
      return decode_bf16;
    case DType::kQ4_0:
      return decode_blocks<Q4_0>;
    case DType::kQ4_1:
      return decode_blocks<Q4_1>;
    case DType::kQ5_0:
      return decode_blocks<Q5_0>;
    case DType::kQ5_1:
      return decode_blocks<Q5_1>;
    case DType::kQ8_0:
      return decode_blocks<Q8_0>;
    case DType::kQ2_0:
      return decode_blocks<Q2_0>;
    case DType::kQ2_K:
      return decode_blocks<Q2_K>;
    case DType::kQ3_K:
      return decode_blocks<Q3_K>;
    case DType::kQ4_K:
      return decode_blocks<Q4_K>;
    case DType::kQ5_K:
      return decode_blocks<Q5_K>;
    case DType::kQ6_K:
      return decode_blocks<Q6_K>;
    case DType::kIQ4_NL:
      return decode_blocks<IQ4_NL>;
    case DType::kIQ4_XS:
      return decode_blocks<IQ4_XS>;
    case DType::kMXFP4:
      return decode_blocks<MXFP4>;
    case DType::kNVFP4:
      return decode_blocks<NVFP4>;
    case DType::kIQ2_XXS:
      return decode_blocks<IQ2_XXS>;
    case DType::kIQ2_XS:
      return decode_blocks<IQ2_XS>;
    case DType::kIQ2_S:
      return decode_blocks<IQ2_S>;
    case DType::kIQ3_XXS:
      return decode_blocks<IQ3_XXS>;
    case DType::kIQ3_S:
      return decode_blocks<IQ3_S>;
    case DType::kIQ1_S:
      return decode_blocks<IQ1_S>;
    case DType::kIQ1_M:
      return decode_blocks<IQ1_M>;
    default:
      return nullptr;
  }
}

}  // namespace forebay
