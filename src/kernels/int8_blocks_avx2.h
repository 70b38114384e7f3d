// The block formats for the integer-dot files, built once with AVX2 and once with AVX-512 VNNI; include
// nowhere else. Helpers stay in the unnamed namespace: the two builds must not share them.
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

#include <concepts>
#include <cstdint>
#include <cstring>

#include "core/vectors.h"
#include "quant/code_values.h"
#include "quant/iq_tables.h"
#include "tensor/dtype.h"

namespace forebay {
namespace {

/// Codes, and how large they are: up to 128.
struct Signed {
  __m256i magnitude, code;
};

/// What a codebook format finds out about a whole block before its runs: which weights of each run are
/// negative, and the rows of its grid, where they are not bytes of the block already.
struct Signs {
  alignas(32) uint32_t negative[8];
};
struct SignsAndRows : Signs {
  alignas(32) uint16_t row[32];
};

template <typename T>
T load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
__m128i load_16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
__m256i load_32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
__m256i bytes(int value) {
  return _mm256_set1_epi8(static_cast<char>(value));
}
__m256i lanes(int value) {
  return _mm256_set1_epi32(value);
}
__m256 lanes(float value) {
  return _mm256_set1_ps(value);
}

/// Bits [shift, shift + width) of each byte.
template <int kShift, int kWidth>
__m256i field(__m256i v) {
  return _mm256_and_si256(_mm256_srli_epi16(v, kShift), bytes((1 << kWidth) - 1));
}
/// Bits [from, from + width) of each byte moved to bit `to`.
template <int kFrom, int kWidth, int kTo>
__m256i moved(__m256i v) {
  const __m256i bits = _mm256_and_si256(v, bytes(((1 << kWidth) - 1) << kFrom));
  if constexpr (kTo > kFrom) return _mm256_slli_epi16(bits, kTo - kFrom);
  if constexpr (kTo < kFrom) return _mm256_srli_epi16(bits, kFrom - kTo);
  return bits;
}
/// Low nibbles of 16 bytes, then high nibbles.
__m256i nibbles(const uint8_t* p) {
  const __m128i v = load_16(p);
  return _mm256_and_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(v), _mm_srli_epi16(v, 4), 1),
                          bytes(15));
}
/// All ones in the byte of each set bit.
__m256i spread_bits(uint32_t mask) {
  const __m256i spread = _mm256_shuffle_epi8(
      lanes(static_cast<int>(mask)), _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                                      2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ull));
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}
__m256i fifth_bits(uint32_t mask) {
  return _mm256_and_si256(spread_bits(mask), bytes(16));
}
__m256i table(const int8_t* values) {
  return _mm256_broadcastsi128_si256(load_16(values));
}

// ---- fields of eight rows, a lane each ----

__m256i dword_of_rows(const uint8_t* const* rows, int64_t at) {
  const auto word = [&](int r) { return load<int>(rows[r] + at); };
  return _mm256_setr_epi32(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7));
}
__m256 half_of_rows(const uint8_t* const* rows, int64_t at) {
  const auto half = [&](int r) { return load<int16_t>(rows[r] + at); };
  return _mm256_cvtph_ps(
      _mm_setr_epi16(half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)));
}
/// The lower halves of eight lanes as half-precision numbers.
__m256 from_half_lanes(__m256i v) {
  const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(v, lanes(0xffff)), _mm256_setzero_si256());
  return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}
/// 16 bytes of each row as four vectors of dwords. kSkip: bytes read before those wanted (zeros come in
/// behind).
struct RowDwords {
  __m256i v[4];
};
template <int kSkip = 0>
RowDwords dwords_of_rows(const uint8_t* const* rows, int64_t at) {
  __m256i r[4];
  for (int i = 0; i < 4; ++i)
    r[i] = _mm256_bsrli_epi128(_mm256_inserti128_si256(_mm256_castsi128_si256(load_16(rows[i] + at - kSkip)),
                                                       load_16(rows[i + 4] + at - kSkip), 1),
                               kSkip);
  const __m256i a = _mm256_unpacklo_epi32(r[0], r[1]), b = _mm256_unpacklo_epi32(r[2], r[3]);
  const __m256i c = _mm256_unpackhi_epi32(r[0], r[1]), d = _mm256_unpackhi_epi32(r[2], r[3]);
  return {{_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b), _mm256_unpacklo_epi64(c, d),
           _mm256_unpackhi_epi64(c, d)}};
}

/// Bits [shift, shift + width) of each lane as a number.
__m256 number(__m256i v, int shift, int width) {
  return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(v, shift), lanes((1 << width) - 1)));
}
/// Byte `i` of each lane, two's complement.
__m256 signed_number(__m256i v, int i) {
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(v, 24 - 8 * i), 24));
}
void put(float* to, __m256 v) {
  _mm256_store_ps(to, v);
}
__m256 negated(__m256 v) {
  return _mm256_xor_ps(v, lanes(-0.0f));
}

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

// ---- codebooks; layouts in quant/iq1.cpp, iq2.cpp, iq3.cpp ----

/// Four rows of a grid. Broadcast and blend: any port may do it, where inserts wait for one.
template <typename Index, size_t kRows>
__m256i octets(const Grid<uint64_t, kRows>& grid, const Index* i) {
#if defined(__AVX512VL__)
  const auto row = [&](int k) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(grid.rows + i[k])); };
  const __m256i two = _mm256_mask_broadcastq_epi64(_mm256_broadcastq_epi64(row(0)), 2, row(1));
  return _mm256_mask_broadcastq_epi64(_mm256_mask_broadcastq_epi64(two, 4, row(2)), 8, row(3));
#else
  const auto row = [&](int k) { return _mm256_set1_epi64x(static_cast<int64_t>(grid.rows[i[k]])); };
  return _mm256_blend_epi32(_mm256_blend_epi32(row(0), row(1), 0x0c),
                            _mm256_blend_epi32(row(2), row(3), 0xc0), 0xf0);
#endif
}
/// The same by their indices, in the order of a gather.
template <size_t kRows>
__m256i gathered(const Grid<uint64_t, kRows>& grid, __m128i index) {
  return _mm256_i32gather_epi64(reinterpret_cast<const long long*>(grid.rows), index, 8);
}
/// Four bytes, and above bit kAt of each as many bits as kWidth of `fields`, which lie kStep apart.
template <int kAt, int kStep, int kWidth = kStep>
__m128i joined_indices(const uint8_t* low, int fields) {
  const __m128i high =
      _mm_srlv_epi32(_mm_set1_epi32(fields << kAt), _mm_setr_epi32(0, kStep, 2 * kStep, 3 * kStep));
  return _mm_or_si128(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(load<int>(low))),
                      _mm_and_si128(high, _mm_set1_epi32(((1 << kWidth) - 1) << kAt)));
}
/// Seven signs in each byte, and an eighth that makes their number even.
__m256i with_eighth_sign(__m256i seven) {
  const __m256i folded = _mm256_and_si256(_mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4)), bytes(15));
  const __m256i odd =
      _mm256_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0, 0, -128, -128,
                       0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0);
  return _mm256_or_si256(seven, _mm256_shuffle_epi8(odd, folded));
}
void put_rows(__m256i first, __m256i second, SignsAndRows& lookup) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.row), first);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.row + 16), second);
}
void put_bits(const uint8_t* bits, Signs& lookup) {
  std::memcpy(lookup.negative, bits, sizeof lookup.negative);
}
/// The sign masks of eight runs from words that hold four times seven signs each, at bit 0.
void put_even_signs(__m256i words, Signs& lookup) {
  const auto part = [&](int l) {  // bits 7l .. 7l + 6 to byte l
    return _mm256_and_si256(_mm256_slli_epi32(words, l), lanes(127 << 8 * l));
  };
  const __m256i seven = _mm256_or_si256(_mm256_or_si256(part(0), part(1)), _mm256_or_si256(part(2), part(3)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.negative), with_eighth_sign(seven));
}

/// Scales of IQ2_XS and IQ2_S: d (0.5 + n) / 4 for sixteen nibbles n.
void put_iq2_scales(const uint8_t* const* rows, int64_t at, int64_t nibbles_at, float* s) {
  const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.25f));
  for (int part = 0; part < 2; ++part) {
    const __m256i v = dword_of_rows(rows, nibbles_at + 4 * part);
    for (int j = 0; j < 8; ++j)
      put(s + 8 * (8 * part + j), _mm256_mul_ps(d, _mm256_add_ps(number(v, 4 * j, 4), lanes(0.5f))));
  }
}

struct IQ2_XXS {
  static constexpr DType kType = DType::kIQ2_XXS;
  static constexpr int kWeights = 256, kBytes = 66;
  static constexpr bool kHalves = false, kMinima = false;
  using Lookup = Signs;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.25f));
    for (int j = 0; j < 8; ++j)
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(number(dword_of_rows(rows, at + 2 + 8 * j + 4), 28, 4),
                                                    lanes(0.5f))));
  }
  static void prepare(const uint8_t* b, Signs& lookup) {
    const __m256i words = _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(load_32(b + 2)), _mm256_castsi256_ps(load_32(b + 34)), 0xdd));
    put_even_signs(_mm256_permute4x64_epi64(words, 0xd8), lookup);
  }
  template <int kRun>
  static __m256i magnitudes(const uint8_t* b, const Signs&) {
    return octets(kIq2xxsGrid, b + 2 + 8 * kRun);
  }
};

struct IQ2_XS {
  static constexpr DType kType = DType::kIQ2_XS;
  static constexpr int kWeights = 256, kBytes = 74;
  static constexpr bool kHalves = true, kMinima = false;
  using Lookup = SignsAndRows;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    put_iq2_scales(rows, at, at + 66, s);
  }
  static void prepare(const uint8_t* b, SignsAndRows& lookup) {
    const __m256i first = load_32(b + 2), second = load_32(b + 34);
    const __m256i seven = _mm256_packus_epi16(_mm256_srli_epi16(first, 9), _mm256_srli_epi16(second, 9));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.negative),
                        with_eighth_sign(_mm256_permute4x64_epi64(seven, 0xd8)));
    put_rows(_mm256_and_si256(first, _mm256_set1_epi16(511)),
             _mm256_and_si256(second, _mm256_set1_epi16(511)), lookup);
  }
  template <int kRun>
  static __m256i magnitudes(const uint8_t*, const SignsAndRows& lookup) {
    return octets(kIq2xsGrid, lookup.row + 4 * kRun);
  }
};

struct IQ2_S {
  static constexpr DType kType = DType::kIQ2_S;
  static constexpr int kWeights = 256, kBytes = 82;
  static constexpr bool kHalves = true, kMinima = false;
  using Lookup = SignsAndRows;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    put_iq2_scales(rows, at, at + 74, s);
  }
  static void prepare(const uint8_t* b, SignsAndRows& lookup) {
    put_bits(b + 34, lookup);
    // A byte of high bits for every four rows: as four words, each shifted to its own pair at bit 8.
    const __m256i high =
        _mm256_broadcastsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 66)));
    const auto rows = [&](const uint8_t* low, char at) {
      const auto byte = [at](int group) { return static_cast<char>(at + group); };
      const char z = -128, g0 = byte(0), g1 = byte(1), g2 = byte(2), g3 = byte(3);
      const __m256i spread =
          _mm256_shuffle_epi8(high, _mm256_setr_epi8(g0, z, g0, z, g0, z, g0, z, g1, z, g1, z, g1, z, g1, z,
                                                     g2, z, g2, z, g2, z, g2, z, g3, z, g3, z, g3, z, g3, z));
      const __m256i pairs = _mm256_mullo_epi16(
          spread, _mm256_set1_epi64x((int64_t{4} << 48) | (int64_t{16} << 32) | (int64_t{64} << 16) | 256));
      return _mm256_or_si256(_mm256_cvtepu8_epi16(load_16(low)),
                             _mm256_and_si256(pairs, _mm256_set1_epi16(0x300)));
    };
    put_rows(rows(b + 2, 0), rows(b + 18, 4), lookup);
  }
  template <int kRun>
  static __m256i magnitudes(const uint8_t*, const SignsAndRows& lookup) {
    return octets(kIq2sGrid, lookup.row + 4 * kRun);
  }
};

struct IQ3_XXS {
  static constexpr DType kType = DType::kIQ3_XXS;
  static constexpr int kWeights = 256, kBytes = 98;
  static constexpr bool kHalves = false, kMinima = false;
  using Lookup = Signs;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.5f));
    for (int part = 0; part < 2; ++part) {
      const RowDwords words = dwords_of_rows(rows, at + 66 + 16 * part);
      for (int j = 0; j < 4; ++j)
        put(s + 8 * (4 * part + j), _mm256_mul_ps(d, _mm256_add_ps(number(words.v[j], 28, 4), lanes(0.5f))));
    }
  }
  static void prepare(const uint8_t* b, Signs& lookup) { put_even_signs(load_32(b + 66), lookup); }
  template <int kRun>
  static __m256i magnitudes(const uint8_t* b, const Signs&) {
    const __m256i index =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 2 + 8 * kRun)));
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(kIq3xxsGrid.rows), index, 4);
  }
};

struct IQ3_S {
  static constexpr DType kType = DType::kIQ3_S;
  static constexpr int kWeights = 256, kBytes = 110;
  static constexpr bool kHalves = false, kMinima = false;
  using Lookup = Signs;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = half_of_rows(rows, at);
    const __m256i codes = dword_of_rows(rows, at + 106);
    for (int j = 0; j < 8; ++j) {
      const __m256 code = number(codes, 4 * j, 4);
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(_mm256_add_ps(code, code), lanes(1.0f))));
    }
  }
  static void prepare(const uint8_t* b, Signs& lookup) { put_bits(b + 74, lookup); }
  template <int kRun>
  static __m256i magnitudes(const uint8_t* b, const Signs&) {
    const __m256i low =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 2 + 8 * kRun)));
    const __m256i ninth = _mm256_and_si256(
        _mm256_sllv_epi32(lanes(static_cast<int>(b[66 + kRun])), _mm256_setr_epi32(8, 7, 6, 5, 4, 3, 2, 1)),
        lanes(256));
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(kIq3sGrid.rows), _mm256_or_si256(low, ninth),
                                  4);
  }
};

/// Eight times the grid's -1, 0, 1, plus `shifts`.
__m256i shifted_grid(__m256i grid, __m256i shifts) {
  return _mm256_add_epi8(_mm256_slli_epi16(_mm256_and_si256(grid, bytes(0x1f)), 3), shifts);
}

struct IQ1_S {
  static constexpr DType kType = DType::kIQ1_S;
  static constexpr int kWeights = 256, kBytes = 50, kOffset = 16;
  static constexpr bool kHalves = false, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.125f));
    const RowDwords words = dwords_of_rows(rows, at + 34);
    for (int j = 0; j < 8; ++j) {
      const __m256 code = number(words.v[j / 2], 16 * (j % 2) + 12, 3);
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(_mm256_add_ps(code, code), lanes(1.0f))));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const int word = load<uint16_t>(b + 34 + 2 * kRun);
    return shifted_grid(gathered(kIq1Grid, joined_indices<8, 3>(b + 2 + 4 * kRun, word)),
                        bytes((word & 0x8000) != 0 ? 15 : 17));
  }
};

struct IQ1_M {
  static constexpr DType kType = DType::kIQ1_M;
  static constexpr int kWeights = 256, kBytes = 56, kOffset = 16;
  static constexpr bool kHalves = true, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256i words[2] = {dword_of_rows(rows, at + 48), dword_of_rows(rows, at + 52)};
    const auto nibble = [&](int k) {  // bits 4k .. 4k + 3 of d
      const __m256i top = _mm256_srli_epi32(words[k / 2], k % 2 == 0 ? 12 : 28);
      return _mm256_slli_epi32(_mm256_and_si256(top, lanes(15)), 4 * k);
    };
    const __m256i bits =
        _mm256_or_si256(_mm256_or_si256(nibble(0), nibble(1)), _mm256_or_si256(nibble(2), nibble(3)));
    const __m256 d = _mm256_mul_ps(from_half_lanes(bits), lanes(0.125f));
    for (int j = 0; j < 16; ++j) {
      const __m256 code = number(words[j / 8], 16 * (j / 4 % 2) + 3 * (j % 4), 3);
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(_mm256_add_ps(code, code), lanes(1.0f))));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const int nibbles = load<uint16_t>(b + 32 + 2 * kRun);
    const __m256i grid = gathered(kIq1Grid, joined_indices<8, 4, 3>(b + 4 * kRun, nibbles));
    const __m128i down = _mm_and_si128(_mm_srlv_epi32(_mm_set1_epi32(nibbles), _mm_setr_epi32(0, 4, 8, 12)),
                                       _mm_set1_epi32(8));
    const __m256i is_down = _mm256_cvtepi32_epi64(_mm_cmpeq_epi32(down, _mm_set1_epi32(8)));
    return shifted_grid(grid, _mm256_add_epi8(bytes(17), _mm256_and_si256(is_down, bytes(-2))));
  }
};

}  // namespace
}  // namespace forebay
