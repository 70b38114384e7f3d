// The block formats for the integer-dot files, built with AVX2, with AVX-512 VNNI and with NEON; include
// nowhere else. Helpers stay in the unnamed namespace: builds must not share them. Formats with codebooks are
// in int8_codebooks_avx2.h.
//
// A format is a struct with
//   kType, kWeights, kBytes of a block
//   kHalves   its scales change every 16 weights, not every 32
//   kMinima   it adds a minimum to every weight
//   scales(rows, at, s, m)   scales (and minima) of the blocks at byte `at` of eight rows: s[unit][row]
// and, for run kRun of a block, 32 codes in order, either
//   kOffset, codes<kRun>(b)   unsigned bytes up to 126, kOffset (a power of two or 0) above the code
//   Signed codes<kRun>(b)     magnitudes and signs
//   prepare(b, lookup), magnitudes<kRun>(b, lookup)   magnitudes up to 62, and for each run a bit where the
//   code is negative
#pragma once

#include <cstdint>

#include "kernels/int8_fields_avx2.h"
#include "quant/code_values.h"
#include "tensor/dtype.h"

namespace forebay {
namespace {

/// Codes, and how large they are: up to 128.
struct Signed {
  __m256i magnitude, code;
};

// ---- simple blocks; layouts in quant/simple_blocks.cpp ----

/// A half-precision scale first and nothing else.
struct LeadingScale {
  static constexpr bool kHalves = false, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    put(s, half_of_rows(rows, at));
  }
};
/// A scale and a minimum.
struct LeadingPair {
  static constexpr bool kHalves = false, kMinima = true;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float* m) {
    const __m256i both = dword_of_rows(rows, at);
    put(s, from_half_lanes(both));
    put(m, from_half_lanes(_mm256_srli_epi32(both, 16)));
  }
};

struct Q4_0 : LeadingScale {
  static constexpr DType kType = DType::kQ4_0;
  static constexpr int kWeights = 32, kBytes = 18, kOffset = 8;
  template <int>
  static __m256i codes(const uint8_t* b) {
    return nibbles(b + 2);
  }
};

struct Q4_1 : LeadingPair {
  static constexpr DType kType = DType::kQ4_1;
  static constexpr int kWeights = 32, kBytes = 20, kOffset = 0;
  template <int>
  static __m256i codes(const uint8_t* b) {
    return nibbles(b + 4);
  }
};

struct Q5_0 : LeadingScale {
  static constexpr DType kType = DType::kQ5_0;
  static constexpr int kWeights = 32, kBytes = 22, kOffset = 16;
  template <int>
  static __m256i codes(const uint8_t* b) {
    return _mm256_or_si256(nibbles(b + 6), fifth_bits(load<uint32_t>(b + 2)));
  }
};

struct Q5_1 : LeadingPair {
  static constexpr DType kType = DType::kQ5_1;
  static constexpr int kWeights = 32, kBytes = 24, kOffset = 0;
  template <int>
  static __m256i codes(const uint8_t* b) {
    return _mm256_or_si256(nibbles(b + 8), fifth_bits(load<uint32_t>(b + 4)));
  }
};

struct Q8_0 : LeadingScale {
  static constexpr DType kType = DType::kQ8_0;
  static constexpr int kWeights = 32, kBytes = 34;
  template <int>
  static Signed codes(const uint8_t* b) {
    const __m256i v = load_32(b + 2);
    return {_mm256_abs_epi8(v), v};
  }
};

struct Q2_0 {
  static constexpr DType kType = DType::kQ2_0;
  static constexpr int kWeights = 64, kBytes = 18, kOffset = 1;
  static constexpr bool kHalves = false, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = half_of_rows(rows, at);
    put(s, d);
    put(s + 8, d);
  }
  /// Each byte four times, as itself, itself, shifted by 4, shifted by 4; then two of its bits, at place 0 or
  /// 2: all that is left differs, so one table tells the code.
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 2 + 8 * kRun));
    const __m256i both = _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(v, _mm_srli_epi16(v, 4)));
    const __m256i spread =
        _mm256_shuffle_epi8(both, _mm256_setr_epi8(0, 0, 8, 8, 1, 1, 9, 9, 2, 2, 10, 10, 3, 3, 11, 11, 4, 4,
                                                   12, 12, 5, 5, 13, 13, 6, 6, 14, 14, 7, 7, 15, 15));
    const __m256i pairs = _mm256_and_si256(spread, _mm256_set1_epi16(0x0c03));
    return _mm256_shuffle_epi8(_mm256_setr_epi8(0, 1, 2, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 1, 2, 3, 1,
                                                0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0),
                               pairs);
  }
};

// ---- K-quants; layouts in quant/k_affine.cpp and quant/k_symmetric.cpp ----

struct Q2_K {
  static constexpr DType kType = DType::kQ2_K;
  static constexpr int kWeights = 256, kBytes = 84, kOffset = 0;
  static constexpr bool kHalves = true, kMinima = true;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float* m) {
    const __m256i both = dword_of_rows(rows, at + 80);
    const __m256 d = from_half_lanes(both);
    const __m256 dmin = negated(from_half_lanes(_mm256_srli_epi32(both, 16)));
    const RowDwords pairs = dwords_of_rows(rows, at);
    for (int j = 0; j < 16; ++j) {
      put(s + 8 * j, _mm256_mul_ps(d, number(pairs.v[j / 4], 8 * (j % 4), 4)));
      put(m + 8 * j, _mm256_mul_ps(dmin, number(pairs.v[j / 4], 8 * (j % 4) + 4, 4)));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    return field<2 * (kRun % 4), 2>(load_32(b + 16 + 32 * (kRun / 4)));
  }
};

struct Q3_K {
  static constexpr DType kType = DType::kQ3_K;
  static constexpr int kWeights = 256, kBytes = 110, kOffset = 4;
  static constexpr bool kHalves = true, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    // The 12 bytes of scales and, behind them, d.
    const RowDwords words = dwords_of_rows<2>(rows, at + 96);
    const __m256 d = from_half_lanes(words.v[3]);
    for (int quad = 0; quad < 4; ++quad) {
      const __m256i low = _mm256_and_si256(_mm256_srli_epi32(words.v[quad % 2], 4 * (quad / 2)), bytes(15));
      const __m256i high = _mm256_and_si256(_mm256_srli_epi32(words.v[2], 2 * quad), bytes(3));
      const __m256i code = _mm256_sub_epi8(_mm256_or_si256(low, _mm256_slli_epi32(high, 4)), bytes(32));
      for (int i = 0; i < 4; ++i) put(s + 8 * (4 * quad + i), _mm256_mul_ps(d, signed_number(code, i)));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const __m256i low = field<2 * (kRun % 4), 2>(load_32(b + 32 + 32 * (kRun / 4)));
    return _mm256_or_si256(low, moved<kRun, 1, 2>(load_32(b)));
  }
};

/// Q4_K and Q5_K open alike: d, dmin, and eight scales and minima of six bits in twelve bytes.
struct AffineHeader {
  static constexpr bool kHalves = false, kMinima = true;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float* m) {
    const RowDwords words = dwords_of_rows(rows, at);
    const __m256 d = from_half_lanes(words.v[0]);
    const __m256 dmin = negated(from_half_lanes(_mm256_srli_epi32(words.v[0], 16)));
    const __m256i early_scales = words.v[1], early_minima = words.v[2], late = words.v[3];
    const __m256i six = bytes(63), nibble = bytes(15), pair = bytes(0x30);
    const __m256i scale[2] = {_mm256_and_si256(early_scales, six),
                              _mm256_or_si256(_mm256_and_si256(late, nibble),
                                              _mm256_and_si256(_mm256_srli_epi32(early_scales, 2), pair))};
    const __m256i minimum[2] = {_mm256_and_si256(early_minima, six),
                                _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(late, 4), nibble),
                                                _mm256_and_si256(_mm256_srli_epi32(early_minima, 2), pair))};
    for (int j = 0; j < 8; ++j) {
      put(s + 8 * j, _mm256_mul_ps(d, number(scale[j / 4], 8 * (j % 4), 8)));
      put(m + 8 * j, _mm256_mul_ps(dmin, number(minimum[j / 4], 8 * (j % 4), 8)));
    }
  }
};

struct Q4_K : AffineHeader {
  static constexpr DType kType = DType::kQ4_K;
  static constexpr int kWeights = 256, kBytes = 144, kOffset = 0;
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    return field<4 * (kRun % 2), 4>(load_32(b + 16 + 32 * (kRun / 2)));
  }
};

struct Q5_K : AffineHeader {
  static constexpr DType kType = DType::kQ5_K;
  static constexpr int kWeights = 256, kBytes = 176, kOffset = 0;
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const __m256i low = field<4 * (kRun % 2), 4>(load_32(b + 48 + 32 * (kRun / 2)));
    return _mm256_or_si256(low, moved<kRun, 1, 4>(load_32(b + 16)));
  }
};

struct Q6_K {
  static constexpr DType kType = DType::kQ6_K;
  static constexpr int kWeights = 256, kBytes = 210, kOffset = 32;
  static constexpr bool kHalves = true, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = half_of_rows(rows, at + 208);
    const RowDwords code = dwords_of_rows(rows, at + 192);
    for (int j = 0; j < 16; ++j) put(s + 8 * j, _mm256_mul_ps(d, signed_number(code.v[j / 4], j % 4)));
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    constexpr int kPart = kRun / 4, kQuarter = kRun % 4;
    const __m256i low = field<4 * (kQuarter / 2), 4>(load_32(b + 64 * kPart + 32 * (kQuarter % 2)));
    return _mm256_or_si256(low, moved<2 * kQuarter, 2, 4>(load_32(b + 128 + 32 * kPart)));
  }
};

// ---- code tables; layouts in quant/iq4.cpp and quant/fp4.cpp ----

constexpr int8_t kIq4Magnitudes[16] = {127, 104, 83, 65, 49, 35, 22, 10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kFp4Codes[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};  // 16 above

Signed iq4_codes(const uint8_t* p) {
  const __m256i code = nibbles(p);
  return {_mm256_shuffle_epi8(table(kIq4Magnitudes), code), _mm256_shuffle_epi8(table(kIq4Values), code)};
}

struct IQ4_NL : LeadingScale {
  static constexpr DType kType = DType::kIQ4_NL;
  static constexpr int kWeights = 32, kBytes = 18;
  template <int>
  static Signed codes(const uint8_t* b) {
    return iq4_codes(b + 2);
  }
};

struct IQ4_XS {
  static constexpr DType kType = DType::kIQ4_XS;
  static constexpr int kWeights = 256, kBytes = 136;
  static constexpr bool kHalves = false, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256i first = dword_of_rows(rows, at), low = dword_of_rows(rows, at + 4);
    const __m256 d = from_half_lanes(first);
    for (int j = 0; j < 8; ++j) {
      const __m256i top = _mm256_and_si256(_mm256_srli_epi32(first, 16 + 2 * j), lanes(3));
      const __m256i code = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(low, 4 * j), lanes(15)),
                                           _mm256_slli_epi32(top, 4));
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_sub_epi32(code, lanes(32)))));
    }
  }
  template <int kRun>
  static Signed codes(const uint8_t* b) {
    return iq4_codes(b + 8 + 16 * kRun);
  }
};

struct MXFP4 {
  static constexpr DType kType = DType::kMXFP4;
  static constexpr int kWeights = 32, kBytes = 17, kOffset = 16;
  static constexpr bool kHalves = false, kMinima = false;
  /// 2^(e - 128): an exponent field of e - 1, and two subnormal numbers.
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const auto byte = [&](int r) { return static_cast<int>(rows[r][at]); };
    const __m256i e =
        _mm256_setr_epi32(byte(0), byte(1), byte(2), byte(3), byte(4), byte(5), byte(6), byte(7));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, lanes(1)), 23);
    const __m256i tiny = _mm256_sllv_epi32(lanes(0x00200000), e);
    put(s, _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(lanes(2), e))));
  }
  template <int>
  static __m256i codes(const uint8_t* b) {
    return _mm256_shuffle_epi8(table(kFp4Codes), nibbles(b + 1));
  }
};

struct NVFP4 {
  static constexpr DType kType = DType::kNVFP4;
  static constexpr int kWeights = 64, kBytes = 36, kOffset = 16;
  static constexpr bool kHalves = true, kMinima = false;
  /// E4M3 fields in the place of a half's are 2^-8 of the number, of which half is wanted. 0x7f stands for 0.
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256i four = dword_of_rows(rows, at);
    const __m256i kept =
        _mm256_andnot_si256(_mm256_cmpeq_epi8(four, bytes(0x7f)), _mm256_and_si256(four, bytes(0x7f)));
    for (int j = 0; j < 4; ++j) {
      const __m256i fields = _mm256_and_si256(_mm256_srli_epi32(kept, 8 * j), lanes(0x7f));
      put(s + 8 * j, _mm256_mul_ps(from_half_lanes(_mm256_slli_epi32(fields, 7)), lanes(0x1p7f)));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const __m256i v = _mm256_castsi128_si256(load_16(b + 4 + 16 * kRun));
    // A half's eight bytes as they are, then shifted.
    const __m256i twice = _mm256_permute4x64_epi64(v, 0x50);
    const __m256i shifted = _mm256_blend_epi32(twice, _mm256_srli_epi16(twice, 4), 0xcc);
    return _mm256_shuffle_epi8(table(kFp4Codes), _mm256_and_si256(shifted, bytes(15)));
  }
};

}  // namespace
}  // namespace forebay
