/// Part of core/vectors.h: what the 256-bit files have in common, and the functions over 128 bits.
///
/// Names and meanings are those of Intel's intrinsics, which is why they look reserved. Two meanings are
/// narrower, and no caller needs more: rounding a number that an int does not hold (x86 gives INT_MIN, this
/// the nearest int), and sums of byte products beyond 16 bits (x86 saturates).
#pragma once

#include <cstdint>
#include <cstring>

#include <arm_neon.h>

// Inlined whatever the compiler thinks: a call would pass vectors through memory, and a copy that stayed
// could be linked into files of older processors.
#define FOREBAY_VECTOR __attribute__((always_inline)) static inline

using __m128 = float32x4_t;
using __m128i = int32x4_t;
struct __m256 {
  float32x4_t low, high;
};
struct __m256i {
  int32x4_t low, high;
};
struct __m256d {
  float64x2_t low, high;
};

enum { _CMP_LE_OQ, _CMP_GE_OQ, _CMP_UNORD_Q };
enum { _MM_FROUND_TO_NEAREST_INT = 0, _MM_FROUND_NO_EXC = 8 };

// Arguments of the built-in must be constants before anything is inlined.
#define _MM_HINT_T0 3
#define _MM_HINT_T1 2
#define _mm_prefetch(at, hint) __builtin_prefetch(at, 0, hint)

namespace forebay::neon {

/// The same bits as lanes of another type.
template <typename To, typename From>
FOREBAY_VECTOR To as(From v) {
  return (To)v;  // between vector types of one size: no conversion
}

/// Lane i becomes table byte index[i] & 15, or 0 where the index has its top bit set.
FOREBAY_VECTOR int32x4_t look_up(int32x4_t table, int32x4_t index) {
  return as<int32x4_t>(vqtbl1q_u8(as<uint8x16_t>(table), vandq_u8(as<uint8x16_t>(index), vdupq_n_u8(0x8f))));
}
/// Lanes shifted left, or right where n is negative; 0 where nothing is left.
FOREBAY_VECTOR int32x4_t shifted(int32x4_t v, int32x4_t n) {
  return as<int32x4_t>(vshlq_u32(as<uint32x4_t>(v), n));
}
FOREBAY_VECTOR int32x4_t pick(int32x4_t where, int32x4_t yes, int32x4_t no) {
  return vbslq_s32(as<uint32x4_t>(where), yes, no);
}
/// a with the sign of b, and 0 where b is.
FOREBAY_VECTOR int32x4_t signed_like(int32x4_t a, int32x4_t b) {
  const int8x16_t v = as<int8x16_t>(a), sign = as<int8x16_t>(b);
  const int8x16_t turned = vbslq_s8(vcltzq_s8(sign), vnegq_s8(v), v);
  return as<int32x4_t>(vandq_s8(turned, as<int8x16_t>(vtstq_s8(sign, sign))));
}

}  // namespace forebay::neon

FOREBAY_VECTOR __m128i _mm_loadu_si128(const __m128i* p) {
  __m128i v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
FOREBAY_VECTOR void _mm_storeu_si128(__m128i* p, __m128i v) {
  std::memcpy(p, &v, sizeof v);
}
FOREBAY_VECTOR __m128i _mm_set_epi64x(int64_t high, int64_t low) {
  return forebay::neon::as<__m128i>(int64x2_t{low, high});
}
FOREBAY_VECTOR __m128i _mm_loadu_si64(const void* p) {
  int64_t v;
  std::memcpy(&v, p, sizeof v);
  return _mm_set_epi64x(0, v);
}
FOREBAY_VECTOR __m128i _mm_loadl_epi64(const __m128i* p) {
  return _mm_loadu_si64(p);
}
FOREBAY_VECTOR __m128i _mm_cvtsi64_si128(int64_t v) {
  return _mm_set_epi64x(0, v);
}
FOREBAY_VECTOR __m128i _mm_cvtsi32_si128(int v) {
  return __m128i{v, 0, 0, 0};
}
FOREBAY_VECTOR int _mm_cvtsi128_si32(__m128i v) {
  return v[0];
}
FOREBAY_VECTOR int _mm_extract_epi32(__m128i v, int i) {
  return v[i];
}
FOREBAY_VECTOR __m128i _mm_setzero_si128() {
  return vdupq_n_s32(0);
}
FOREBAY_VECTOR __m128i _mm_set1_epi32(int v) {
  return vdupq_n_s32(v);
}
FOREBAY_VECTOR __m128i _mm_set1_epi8(char v) {
  return forebay::neon::as<__m128i>(vdupq_n_u8(static_cast<uint8_t>(v)));
}
FOREBAY_VECTOR __m128i _mm_setr_epi32(int a, int b, int c, int d) {
  return __m128i{a, b, c, d};
}
template <typename... Byte>
FOREBAY_VECTOR __m128i _mm_setr_epi8(Byte... bytes) {
  return forebay::neon::as<__m128i>(int8x16_t{static_cast<int8_t>(bytes)...});
}
template <typename... Word>
FOREBAY_VECTOR __m128i _mm_setr_epi16(Word... words) {
  return forebay::neon::as<__m128i>(int16x8_t{static_cast<int16_t>(words)...});
}

FOREBAY_VECTOR __m128i _mm_and_si128(__m128i a, __m128i b) {
  return a & b;
}
FOREBAY_VECTOR __m128i _mm_or_si128(__m128i a, __m128i b) {
  return a | b;
}
FOREBAY_VECTOR __m128i _mm_add_epi32(__m128i a, __m128i b) {
  return vaddq_s32(a, b);
}
FOREBAY_VECTOR __m128i _mm_max_epi32(__m128i a, __m128i b) {
  return vmaxq_s32(a, b);
}
FOREBAY_VECTOR __m128i _mm_cmpeq_epi32(__m128i a, __m128i b) {
  return forebay::neon::as<__m128i>(vceqq_s32(a, b));
}
FOREBAY_VECTOR __m128i _mm_sign_epi8(__m128i a, __m128i b) {
  return forebay::neon::signed_like(a, b);
}
FOREBAY_VECTOR __m128i _mm_srli_epi16(__m128i v, int n) {
  return forebay::neon::as<__m128i>(forebay::neon::as<uint16x8_t>(v) >> static_cast<uint16_t>(n));
}
FOREBAY_VECTOR __m128i _mm_srlv_epi32(__m128i v, __m128i n) {
  return forebay::neon::shifted(v, -n);
}
FOREBAY_VECTOR __m128i _mm_shuffle_epi8(__m128i table, __m128i index) {
  return forebay::neon::look_up(table, index);
}
FOREBAY_VECTOR __m128i _mm_unpacklo_epi32(__m128i a, __m128i b) {
  return vzip1q_s32(a, b);
}
FOREBAY_VECTOR __m128i _mm_unpackhi_epi32(__m128i a, __m128i b) {
  return vzip2q_s32(a, b);
}
FOREBAY_VECTOR __m128i _mm_unpacklo_epi64(__m128i a, __m128i b) {
  using namespace forebay::neon;
  return as<__m128i>(vzip1q_s64(as<int64x2_t>(a), as<int64x2_t>(b)));
}
FOREBAY_VECTOR __m128i _mm_unpackhi_epi64(__m128i a, __m128i b) {
  using namespace forebay::neon;
  return as<__m128i>(vzip2q_s64(as<int64x2_t>(a), as<int64x2_t>(b)));
}
FOREBAY_VECTOR __m128i _mm_cvtepu16_epi32(__m128i v) {
  return forebay::neon::as<__m128i>(vmovl_u16(vget_low_u16(forebay::neon::as<uint16x8_t>(v))));
}
FOREBAY_VECTOR __m128i _mm_cvtepu8_epi32(__m128i v) {
  const uint16x8_t words = vmovl_u8(vget_low_u8(forebay::neon::as<uint8x16_t>(v)));
  return forebay::neon::as<__m128i>(vmovl_u16(vget_low_u16(words)));
}
/// Lane i: lane order >> 2i & 3.
#define _mm_shuffle_epi32(v, order) \
  __builtin_shufflevector(v, v, (order)&3, (order) >> 2 & 3, (order) >> 4 & 3, (order) >> 6 & 3)

// ---- floats ----

FOREBAY_VECTOR __m128 _mm_castsi128_ps(__m128i v) {
  return forebay::neon::as<__m128>(v);
}
FOREBAY_VECTOR float _mm_cvtss_f32(__m128 v) {
  return v[0];
}
FOREBAY_VECTOR void _mm_storeu_ps(float* p, __m128 v) {
  vst1q_f32(p, v);
}
FOREBAY_VECTOR void _mm_store_ps(float* p, __m128 v) {
  vst1q_f32(p, v);
}
FOREBAY_VECTOR __m128 _mm_add_ps(__m128 a, __m128 b) {
  return vaddq_f32(a, b);
}
FOREBAY_VECTOR __m128 _mm_add_ss(__m128 a, __m128 b) {
  a[0] += b[0];
  return a;
}
/// The second where they are equal or one is a NaN.
FOREBAY_VECTOR __m128 _mm_max_ps(__m128 a, __m128 b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
FOREBAY_VECTOR __m128 _mm_max_ss(__m128 a, __m128 b) {
  a[0] = a[0] > b[0] ? a[0] : b[0];
  return a;
}
FOREBAY_VECTOR __m128 _mm_movehl_ps(__m128 a, __m128 b) {
  return vcombine_f32(vget_high_f32(b), vget_high_f32(a));
}
FOREBAY_VECTOR __m128 _mm_unpacklo_ps(__m128 a, __m128 b) {
  return vzip1q_f32(a, b);
}
#define _mm_shuffle_ps(a, b, order) \
  __builtin_shufflevector(a, b, (order)&3, (order) >> 2 & 3, 4 + ((order) >> 4 & 3), 4 + ((order) >> 6 & 3))

FOREBAY_VECTOR float _cvtsh_ss(uint16_t bits) {
  __fp16 half;
  std::memcpy(&half, &bits, sizeof half);
  return half;
}
