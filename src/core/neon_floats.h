/// Part of core/vectors.h: f32 and f64 in 256 bits.
#pragma once

#include "core/neon_integers.h"

#define FOREBAY_FLOATS(name, expression)                                                   \
  FOREBAY_VECTOR __m256 name(__m256 x, __m256 y) {                                         \
    const auto f = [](float32x4_t a, float32x4_t b) -> float32x4_t { return expression; }; \
    return {f(x.low, y.low), f(x.high, y.high)};                                           \
  }
#define FOREBAY_FLOAT_BITS(name, operation)                                                 \
  FOREBAY_VECTOR __m256 name(__m256 x, __m256 y) {                                          \
    const auto f = [](float32x4_t a, float32x4_t b) {                                       \
      return forebay::neon::as<float32x4_t>(forebay::neon::as<int32x4_t>(a)                 \
                                                operation forebay::neon::as<int32x4_t>(b)); \
    };                                                                                      \
    return {f(x.low, y.low), f(x.high, y.high)};                                            \
  }

FOREBAY_FLOATS(_mm256_add_ps, vaddq_f32(a, b))
FOREBAY_FLOATS(_mm256_sub_ps, vsubq_f32(a, b))
FOREBAY_FLOATS(_mm256_mul_ps, vmulq_f32(a, b))
FOREBAY_FLOATS(_mm256_div_ps, vdivq_f32(a, b))
FOREBAY_FLOATS(_mm256_hadd_ps, vpaddq_f32(a, b))
// The second where they are equal or one is a NaN.
FOREBAY_FLOATS(_mm256_max_ps, vbslq_f32(vcgtq_f32(a, b), a, b))
FOREBAY_FLOATS(_mm256_min_ps, vbslq_f32(vcltq_f32(a, b), a, b))
FOREBAY_FLOAT_BITS(_mm256_and_ps, &)
FOREBAY_FLOAT_BITS(_mm256_or_ps, |)
FOREBAY_FLOAT_BITS(_mm256_xor_ps, ^)
#undef FOREBAY_FLOATS
#undef FOREBAY_FLOAT_BITS

FOREBAY_VECTOR __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
/// c - a * b
FOREBAY_VECTOR __m256 _mm256_fnmadd_ps(__m256 a, __m256 b, __m256 c) {
  return {vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high)};
}

FOREBAY_VECTOR __m256 _mm256_loadu_ps(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4)};
}
FOREBAY_VECTOR __m256 _mm256_load_ps(const float* p) {
  return _mm256_loadu_ps(p);
}
FOREBAY_VECTOR void _mm256_storeu_ps(float* p, __m256 v) {
  vst1q_f32(p, v.low);
  vst1q_f32(p + 4, v.high);
}
FOREBAY_VECTOR void _mm256_store_ps(float* p, __m256 v) {
  _mm256_storeu_ps(p, v);
}
/// Lanes whose mask has its top bit set; memory of the others is not touched.
FOREBAY_VECTOR __m256 _mm256_maskload_ps(const float* p, __m256i mask) {
  float lanes[8];
  for (int i = 0; i < 8; ++i) lanes[i] = _mm256_extract_epi32(mask, i) < 0 ? p[i] : 0.0f;
  return _mm256_loadu_ps(lanes);
}
FOREBAY_VECTOR void _mm256_maskstore_ps(float* p, __m256i mask, __m256 v) {
  float lanes[8];
  _mm256_storeu_ps(lanes, v);
  for (int i = 0; i < 8; ++i)
    if (_mm256_extract_epi32(mask, i) < 0) p[i] = lanes[i];
}
FOREBAY_VECTOR __m256 _mm256_set1_ps(float v) {
  return {vdupq_n_f32(v), vdupq_n_f32(v)};
}
FOREBAY_VECTOR __m256 _mm256_setzero_ps() {
  return _mm256_set1_ps(0.0f);
}
FOREBAY_VECTOR __m256 _mm256_broadcast_ss(const float* p) {
  return {vld1q_dup_f32(p), vld1q_dup_f32(p)};
}
FOREBAY_VECTOR __m256 _mm256_setr_ps(float a, float b, float c, float d, float e, float f, float g, float h) {
  return {float32x4_t{a, b, c, d}, float32x4_t{e, f, g, h}};
}
FOREBAY_VECTOR __m256i _mm256_castps_si256(__m256 v) {
  return {forebay::neon::as<int32x4_t>(v.low), forebay::neon::as<int32x4_t>(v.high)};
}
FOREBAY_VECTOR __m256 _mm256_castsi256_ps(__m256i v) {
  return {forebay::neon::as<float32x4_t>(v.low), forebay::neon::as<float32x4_t>(v.high)};
}
FOREBAY_VECTOR __m128 _mm256_castps256_ps128(__m256 v) {
  return v.low;
}
FOREBAY_VECTOR __m128 _mm256_extractf128_ps(__m256 v, int i) {
  return i == 0 ? v.low : v.high;
}
FOREBAY_VECTOR float _mm256_cvtss_f32(__m256 v) {
  return v.low[0];
}

/// By the top bit of each lane of `where`.
FOREBAY_VECTOR __m256 _mm256_blendv_ps(__m256 no, __m256 yes, __m256 where) {
  const auto half = [](float32x4_t n, float32x4_t y, float32x4_t w) {
    return vbslq_f32(vcltzq_s32(forebay::neon::as<int32x4_t>(w)), y, n);
  };
  return {half(no.low, yes.low, where.low), half(no.high, yes.high, where.high)};
}
FOREBAY_VECTOR __m256 _mm256_cmp_ps(__m256 a, __m256 b, int predicate) {
  const auto half = [predicate](float32x4_t x, float32x4_t y) {
    const uint32x4_t is = predicate == _CMP_LE_OQ   ? vcleq_f32(x, y)
                          : predicate == _CMP_GE_OQ ? vcgeq_f32(x, y)
                                                    : ~(vceqq_f32(x, x) & vceqq_f32(y, y));
    return forebay::neon::as<float32x4_t>(is);
  };
  return {half(a.low, b.low), half(a.high, b.high)};
}
/// The top bits of the lanes.
FOREBAY_VECTOR int _mm256_movemask_ps(__m256 v) {
  const auto half = [](float32x4_t x, uint32x4_t weight) {
    return vaddvq_u32((forebay::neon::as<uint32x4_t>(x) >> 31) * weight);
  };
  return static_cast<int>(half(v.low, uint32x4_t{1, 2, 4, 8}) + half(v.high, uint32x4_t{16, 32, 64, 128}));
}
FOREBAY_VECTOR __m256 _mm256_permute2f128_ps(__m256 a, __m256 b, int which) {
  return _mm256_castsi256_ps(
      _mm256_permute2x128_si256(_mm256_castps_si256(a), _mm256_castps_si256(b), which));
}
FOREBAY_VECTOR __m256 _mm256_permutevar8x32_ps(__m256 v, __m256i index) {
  return _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(_mm256_castps_si256(v), index));
}
/// Lane i: the lane of its half that the two lowest bits of index lane i name.
FOREBAY_VECTOR __m256 _mm256_permutevar_ps(__m256 v, __m256i index) {
  const auto half = [](float32x4_t x, int32x4_t i) {
    const uint32x4_t at = forebay::neon::as<uint32x4_t>(i) & vdupq_n_u32(3);
    const uint32x4_t bytes = at * 0x04040404u + vdupq_n_u32(0x03020100u);
    return forebay::neon::as<float32x4_t>(
        vqtbl1q_u8(forebay::neon::as<uint8x16_t>(x), forebay::neon::as<uint8x16_t>(bytes)));
  };
  return {half(v.low, index.low), half(v.high, index.high)};
}
#define _mm256_shuffle_ps(a, b, order) forebay::neon::shuffle_halves<order>(a, b)
namespace forebay::neon {
template <int kOrder>
FOREBAY_VECTOR __m256 shuffle_halves(__m256 a, __m256 b) {
  return {_mm_shuffle_ps(a.low, b.low, kOrder), _mm_shuffle_ps(a.high, b.high, kOrder)};
}
}  // namespace forebay::neon

// ---- conversions ----

FOREBAY_VECTOR __m256 _mm256_cvtepi32_ps(__m256i v) {
  return {vcvtq_f32_s32(v.low), vcvtq_f32_s32(v.high)};
}
FOREBAY_VECTOR __m256i _mm256_cvtps_epi32(__m256 v) {
  return {vcvtnq_s32_f32(v.low), vcvtnq_s32_f32(v.high)};
}
/// To the nearest, whatever `how`.
FOREBAY_VECTOR __m256 _mm256_round_ps(__m256 v, int) {
  return {vrndnq_f32(v.low), vrndnq_f32(v.high)};
}
FOREBAY_VECTOR __m256 _mm256_cvtph_ps(__m128i halves) {
  const float16x8_t v = forebay::neon::as<float16x8_t>(halves);
  return {vcvt_f32_f16(vget_low_f16(v)), vcvt_high_f32_f16(v)};
}
FOREBAY_VECTOR __m128i _mm256_cvtps_ph(__m256 v, int) {
  return forebay::neon::as<__m128i>(vcombine_f16(vcvt_f16_f32(v.low), vcvt_f16_f32(v.high)));
}

// ---- f64 ----

FOREBAY_VECTOR __m256d _mm256_loadu_pd(const double* p) {
  return {vld1q_f64(p), vld1q_f64(p + 2)};
}
FOREBAY_VECTOR void _mm256_storeu_pd(double* p, __m256d v) {
  vst1q_f64(p, v.low);
  vst1q_f64(p + 2, v.high);
}
FOREBAY_VECTOR __m256d _mm256_set1_pd(double v) {
  return {vdupq_n_f64(v), vdupq_n_f64(v)};
}
FOREBAY_VECTOR __m256d _mm256_add_pd(__m256d a, __m256d b) {
  return {vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high)};
}
FOREBAY_VECTOR __m256d _mm256_sub_pd(__m256d a, __m256d b) {
  return {vsubq_f64(a.low, b.low), vsubq_f64(a.high, b.high)};
}
FOREBAY_VECTOR __m256d _mm256_mul_pd(__m256d a, __m256d b) {
  return {vmulq_f64(a.low, b.low), vmulq_f64(a.high, b.high)};
}
FOREBAY_VECTOR __m256i _mm256_castpd_si256(__m256d v) {
  return {forebay::neon::as<int32x4_t>(v.low), forebay::neon::as<int32x4_t>(v.high)};
}
FOREBAY_VECTOR __m256d _mm256_castsi256_pd(__m256i v) {
  return {forebay::neon::as<float64x2_t>(v.low), forebay::neon::as<float64x2_t>(v.high)};
}
FOREBAY_VECTOR __m256d _mm256_and_pd(__m256d a, __m256d b) {
  return _mm256_castsi256_pd(_mm256_and_si256(_mm256_castpd_si256(a), _mm256_castpd_si256(b)));
}
/// Only what is asked for: a >= b.
FOREBAY_VECTOR __m256d _mm256_cmp_pd(__m256d a, __m256d b, int) {
  return {forebay::neon::as<float64x2_t>(vcgeq_f64(a.low, b.low)),
          forebay::neon::as<float64x2_t>(vcgeq_f64(a.high, b.high))};
}
