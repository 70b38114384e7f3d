/// Part of core/vectors.h: integers in 256 bits. What crosses the middle on AVX2 does here, what stays in its
/// half there stays in its register here.
#pragma once

#include "core/neon_words.h"

namespace forebay::neon {

/// f of both halves, seen as V.
template <typename V, typename F>
FOREBAY_VECTOR __m256i each(__m256i a, F f) {
  return {as<int32x4_t>(f(as<V>(a.low))), as<int32x4_t>(f(as<V>(a.high)))};
}
template <typename V, typename F>
FOREBAY_VECTOR __m256i each(__m256i a, __m256i b, F f) {
  return {as<int32x4_t>(f(as<V>(a.low), as<V>(b.low))), as<int32x4_t>(f(as<V>(a.high), as<V>(b.high)))};
}
/// 128 bits of a (0, 1) or b (2, 3).
FOREBAY_VECTOR int32x4_t half_of(__m256i a, __m256i b, int i) {
  return i == 0 ? a.low : i == 1 ? a.high : i == 2 ? b.low : b.high;
}

}  // namespace forebay::neon

#define FOREBAY_UNARY(name, type, expression)                               \
  FOREBAY_VECTOR __m256i name(__m256i a) {                                  \
    return forebay::neon::each<type>(a, [](type v) { return expression; }); \
  }
#define FOREBAY_BINARY(name, type, expression)                                         \
  FOREBAY_VECTOR __m256i name(__m256i x, __m256i y) {                                  \
    return forebay::neon::each<type>(x, y, [](type a, type b) { return expression; }); \
  }
#define FOREBAY_SHIFT(name, type, operation)                                                          \
  FOREBAY_VECTOR __m256i name(__m256i x, int n) {                                                     \
    return forebay::neon::each<type>(x, [n](type v) { return v operation static_cast<uint8_t>(n); }); \
  }

FOREBAY_BINARY(_mm256_and_si256, int32x4_t, a& b)
FOREBAY_BINARY(_mm256_or_si256, int32x4_t, a | b)
FOREBAY_BINARY(_mm256_xor_si256, int32x4_t, a ^ b)
FOREBAY_BINARY(_mm256_andnot_si256, int32x4_t, ~a& b)
FOREBAY_BINARY(_mm256_add_epi8, uint8x16_t, a + b)
FOREBAY_BINARY(_mm256_sub_epi8, uint8x16_t, a - b)
FOREBAY_BINARY(_mm256_add_epi16, uint16x8_t, a + b)
FOREBAY_BINARY(_mm256_add_epi32, uint32x4_t, a + b)
FOREBAY_BINARY(_mm256_sub_epi32, uint32x4_t, a - b)
FOREBAY_BINARY(_mm256_add_epi64, uint64x2_t, a + b)
FOREBAY_BINARY(_mm256_mullo_epi16, uint16x8_t, a* b)
FOREBAY_BINARY(_mm256_hadd_epi32, int32x4_t, vpaddq_s32(a, b))
FOREBAY_BINARY(_mm256_max_epi32, int32x4_t, vmaxq_s32(a, b))
FOREBAY_BINARY(_mm256_min_epi32, int32x4_t, vminq_s32(a, b))
FOREBAY_BINARY(_mm256_cmpeq_epi8, uint8x16_t, vceqq_u8(a, b))
FOREBAY_BINARY(_mm256_cmpgt_epi32, int32x4_t, vcgtq_s32(a, b))
FOREBAY_BINARY(_mm256_sign_epi8, int32x4_t, forebay::neon::signed_like(a, b))
FOREBAY_BINARY(_mm256_shuffle_epi8, int32x4_t, forebay::neon::look_up(a, b))
FOREBAY_BINARY(_mm256_unpacklo_epi32, int32x4_t, vzip1q_s32(a, b))
FOREBAY_BINARY(_mm256_unpackhi_epi32, int32x4_t, vzip2q_s32(a, b))
FOREBAY_BINARY(_mm256_unpacklo_epi64, int64x2_t, vzip1q_s64(a, b))
FOREBAY_BINARY(_mm256_unpackhi_epi64, int64x2_t, vzip2q_s64(a, b))
FOREBAY_BINARY(_mm256_packs_epi32, int32x4_t, vcombine_s16(vqmovn_s32(a), vqmovn_s32(b)))
FOREBAY_BINARY(_mm256_packus_epi32, int32x4_t, vcombine_u16(vqmovun_s32(a), vqmovun_s32(b)))
FOREBAY_BINARY(_mm256_packs_epi16, int16x8_t, vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)))
FOREBAY_BINARY(_mm256_packus_epi16, int16x8_t, vcombine_u8(vqmovun_s16(a), vqmovun_s16(b)))
FOREBAY_BINARY(_mm256_sllv_epi32, int32x4_t, forebay::neon::shifted(a, b))
FOREBAY_BINARY(_mm256_srlv_epi32, int32x4_t, forebay::neon::shifted(a, -b))
FOREBAY_UNARY(_mm256_abs_epi8, int8x16_t, vabsq_s8(v))
FOREBAY_SHIFT(_mm256_srli_epi16, uint16x8_t, >>)
FOREBAY_SHIFT(_mm256_slli_epi16, uint16x8_t, <<)
FOREBAY_SHIFT(_mm256_srli_epi32, uint32x4_t, >>)
FOREBAY_SHIFT(_mm256_slli_epi32, uint32x4_t, <<)
FOREBAY_SHIFT(_mm256_srai_epi32, int32x4_t, >>)
FOREBAY_SHIFT(_mm256_slli_epi64, uint64x2_t, <<)
#undef FOREBAY_UNARY
#undef FOREBAY_BINARY
#undef FOREBAY_SHIFT

FOREBAY_VECTOR __m256i _mm256_loadu_si256(const __m256i* p) {
  __m256i v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
FOREBAY_VECTOR __m256i _mm256_load_si256(const __m256i* p) {
  return _mm256_loadu_si256(p);
}
FOREBAY_VECTOR void _mm256_storeu_si256(__m256i* p, __m256i v) {
  std::memcpy(p, &v, sizeof v);
}
FOREBAY_VECTOR void _mm256_store_si256(__m256i* p, __m256i v) {
  _mm256_storeu_si256(p, v);
}
FOREBAY_VECTOR __m256i _mm256_broadcastsi128_si256(__m128i v) {
  return {v, v};
}
FOREBAY_VECTOR __m256i _mm256_setzero_si256() {
  return _mm256_broadcastsi128_si256(_mm_setzero_si128());
}
FOREBAY_VECTOR __m256i _mm256_set1_epi8(char v) {
  return _mm256_broadcastsi128_si256(_mm_set1_epi8(v));
}
FOREBAY_VECTOR __m256i _mm256_set1_epi16(int16_t v) {
  return _mm256_broadcastsi128_si256(forebay::neon::as<__m128i>(vdupq_n_s16(v)));
}
FOREBAY_VECTOR __m256i _mm256_set1_epi32(int v) {
  return _mm256_broadcastsi128_si256(vdupq_n_s32(v));
}
FOREBAY_VECTOR __m256i _mm256_set1_epi64x(int64_t v) {
  return _mm256_broadcastsi128_si256(_mm_set_epi64x(v, v));
}
FOREBAY_VECTOR __m256i _mm256_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h) {
  return {int32x4_t{a, b, c, d}, int32x4_t{e, f, g, h}};
}
template <typename... Byte>
FOREBAY_VECTOR __m256i _mm256_setr_epi8(Byte... all) {
  const int8_t bytes[32] = {static_cast<int8_t>(all)...};
  __m256i v;
  std::memcpy(&v, bytes, sizeof v);
  return v;
}
FOREBAY_VECTOR __m256i _mm256_castsi128_si256(__m128i v) {
  return {v, v};
}
FOREBAY_VECTOR __m128i _mm256_castsi256_si128(__m256i v) {
  return v.low;
}
FOREBAY_VECTOR __m128i _mm256_extracti128_si256(__m256i v, int i) {
  return i == 0 ? v.low : v.high;
}
FOREBAY_VECTOR __m256i _mm256_inserti128_si256(__m256i v, __m128i half, int i) {
  return i == 0 ? __m256i{half, v.high} : __m256i{v.low, half};
}
FOREBAY_VECTOR int _mm256_extract_epi32(__m256i v, int i) {
  return i < 4 ? v.low[i] : v.high[i - 4];
}

/// Sums of two neighbouring products of signed words.
FOREBAY_VECTOR __m256i _mm256_madd_epi16(__m256i a, __m256i b) {
  return forebay::neon::each<int16x8_t>(a, b, [](int16x8_t x, int16x8_t y) {
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
  });
}
/// Sums of two neighbouring products of an unsigned and a signed byte.
FOREBAY_VECTOR __m256i _mm256_maddubs_epi16(__m256i u, __m256i s) {
  return forebay::neon::each<int8x16_t>(u, s, [](int8x16_t x, int8x16_t y) {
    const uint8x16_t bytes = forebay::neon::as<uint8x16_t>(x);
    const int16x8_t low = forebay::neon::as<int16x8_t>(vmovl_u8(vget_low_u8(bytes)));
    const int16x8_t high = forebay::neon::as<int16x8_t>(vmovl_high_u8(bytes));
    return vpaddq_s16(vmulq_s16(low, vmovl_s8(vget_low_s8(y))), vmulq_s16(high, vmovl_high_s8(y)));
  });
}

/// By the top bit of each byte of `where`.
FOREBAY_VECTOR __m256i _mm256_blendv_epi8(__m256i no, __m256i yes, __m256i where) {
  using namespace forebay::neon;
  const auto half = [](int32x4_t n, int32x4_t y, int32x4_t w) {
    return pick(as<int32x4_t>(vcltzq_s8(as<int8x16_t>(w))), y, n);
  };
  return {half(no.low, yes.low, where.low), half(no.high, yes.high, where.high)};
}
/// Lane i of b where bit i of `which` is set.
FOREBAY_VECTOR __m256i _mm256_blend_epi32(__m256i a, __m256i b, int which) {
  const auto mask = [which](int bit) { return which >> bit & 1 ? -1 : 0; };
  return {forebay::neon::pick(int32x4_t{mask(0), mask(1), mask(2), mask(3)}, b.low, a.low),
          forebay::neon::pick(int32x4_t{mask(4), mask(5), mask(6), mask(7)}, b.high, a.high)};
}
FOREBAY_VECTOR __m256i _mm256_permute2x128_si256(__m256i a, __m256i b, int which) {
  return {forebay::neon::half_of(a, b, which & 3), forebay::neon::half_of(a, b, which >> 4 & 3)};
}
FOREBAY_VECTOR __m256i _mm256_permute4x64_epi64(__m256i v, int order) {
  using namespace forebay::neon;
  const auto word = [&](int i) {
    const int at = order >> 2 * i & 3;
    return as<int64x2_t>(at < 2 ? v.low : v.high)[at % 2];
  };
  return {_mm_set_epi64x(word(1), word(0)), _mm_set_epi64x(word(3), word(2))};
}
FOREBAY_VECTOR __m256i _mm256_permutevar8x32_epi32(__m256i v, __m256i index) {
  const uint8x16x2_t table = {{forebay::neon::as<uint8x16_t>(v.low), forebay::neon::as<uint8x16_t>(v.high)}};
  return forebay::neon::each<uint32x4_t>(index, [&](uint32x4_t i) {
    const uint32x4_t bytes = (i & vdupq_n_u32(7)) * 0x04040404u + vdupq_n_u32(0x03020100u);
    return vqtbl2q_u8(table, forebay::neon::as<uint8x16_t>(bytes));
  });
}
#define _mm256_bsrli_epi128(v, n)  \
  forebay::neon::each<uint8x16_t>( \
      v, [](uint8x16_t half_of_it) { return vextq_u8(half_of_it, vdupq_n_u8(0), n); })
FOREBAY_VECTOR __m256i _mm256_sll_epi32(__m256i v, __m128i n) {
  const int32x4_t by = vdupq_n_s32(n[0]);
  return {forebay::neon::shifted(v.low, by), forebay::neon::shifted(v.high, by)};
}

// ---- wider lanes ----

FOREBAY_VECTOR __m256i _mm256_cvtepu16_epi32(__m128i v) {
  using namespace forebay::neon;
  const uint16x8_t words = as<uint16x8_t>(v);
  return {as<int32x4_t>(vmovl_u16(vget_low_u16(words))), as<int32x4_t>(vmovl_high_u16(words))};
}
FOREBAY_VECTOR __m256i _mm256_cvtepu8_epi32(__m128i v) {
  return _mm256_cvtepu16_epi32(
      forebay::neon::as<__m128i>(vmovl_u8(vget_low_u8(forebay::neon::as<uint8x16_t>(v)))));
}
FOREBAY_VECTOR __m256i _mm256_cvtepu8_epi16(__m128i v) {
  using namespace forebay::neon;
  const uint8x16_t bytes = as<uint8x16_t>(v);
  return {as<int32x4_t>(vmovl_u8(vget_low_u8(bytes))), as<int32x4_t>(vmovl_high_u8(bytes))};
}
FOREBAY_VECTOR __m256i _mm256_cvtepi8_epi32(__m128i v) {
  const int16x8_t words = vmovl_s8(vget_low_s8(forebay::neon::as<int8x16_t>(v)));
  return {vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words)};
}
FOREBAY_VECTOR __m256i _mm256_cvtepi32_epi64(__m128i v) {
  using namespace forebay::neon;
  return {as<int32x4_t>(vmovl_s32(vget_low_s32(v))), as<int32x4_t>(vmovl_high_s32(v))};
}

// ---- looked up in memory ----

FOREBAY_VECTOR __m256i _mm256_i32gather_epi64(const long long* from, __m128i index, int) {
  return {_mm_set_epi64x(from[index[1]], from[index[0]]), _mm_set_epi64x(from[index[3]], from[index[2]])};
}
FOREBAY_VECTOR __m256i _mm256_i32gather_epi32(const int* from, __m256i index, int) {
  const auto four = [&](int32x4_t i) { return int32x4_t{from[i[0]], from[i[1]], from[i[2]], from[i[3]]}; };
  return {four(index.low), four(index.high)};
}
