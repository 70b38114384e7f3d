// Bit fields of blocks in vectors: of 32 codes in order, and of eight rows a lane each. For
// int8_blocks_avx2.h and int8_codebooks_avx2.h, and like them built once for every instruction set; include
// nowhere else.
#pragma once

#include <cstdint>

#include "core/vectors.h"
#include "kernels/unaligned.h"

namespace forebay {
namespace {

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

}  // namespace
}  // namespace forebay
