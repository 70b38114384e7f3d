// AVX2 building blocks shared by the *_avx2.cpp files; include nowhere else. Every element goes through the
// same vector code whether it sits in a full vector or in the masked tail of a row, so that its bits do not
// depend on its position.
#pragma once

#include <cstdint>

#include "core/vectors.h"

namespace forebay::simd {

/// Lanes 0..n-1 set, for n in 0..8.
inline __m256i tail_mask(int64_t n) {
  alignas(32) static constexpr int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + 8 - n));
}

/// load(p, n): the first min(n, 8) values, zeros after.
inline __m256 load(const float* p, int64_t n) {
  return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, tail_mask(n));
}
inline void store(float* p, int64_t n, __m256 v) {
  if (n >= 8)
    _mm256_storeu_ps(p, v);
  else
    _mm256_maskstore_ps(p, tail_mask(n), v);
}

/// (l0+l4)+(l2+l6) + (l1+l5)+(l3+l7): the order is part of the kernels' contract.
inline float sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  s = _mm_add_ss(s, _mm_shuffle_ps(s, s, 1));
  return _mm_cvtss_f32(s);
}

/// sum_i a[i] * b[i], one accumulator: the order depends on n alone.
inline float dot(const float* a, const float* b, int64_t n) {
  __m256 acc = _mm256_setzero_ps();
  for (int64_t i = 0; i < n; i += 8) acc = _mm256_fmadd_ps(load(a + i, n - i), load(b + i, n - i), acc);
  return sum(acc);
}

/// y[i] += a * x[i]
inline void axpy(float a, const float* x, float* y, int64_t n) {
  const __m256 va = _mm256_set1_ps(a);
  for (int64_t i = 0; i < n; i += 8)
    store(y + i, n - i, _mm256_fmadd_ps(va, load(x + i, n - i), load(y + i, n - i)));
}

/// e^x to about 2 ulp on [-87.3, 88.3], clamped outside; NaN stays NaN.
/// x = n ln2 + r, |r| <= ln2/2; e^r by its Taylor polynomial of degree 7 (error < 4e-9 relative).
inline __m256 exp(__m256 x) {
  // min/max return the second operand when either is NaN.
  x = _mm256_min_ps(_mm256_set1_ps(88.3f), x);
  x = _mm256_max_ps(_mm256_set1_ps(-87.3f), x);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln2 in two parts, the first exact in 9 bits.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.0f / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
  return _mm256_blendv_ps(scaled, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

inline __m256 sigmoid(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f);
  return _mm256_div_ps(one, _mm256_add_ps(one, exp(_mm256_sub_ps(_mm256_setzero_ps(), x))));
}
inline __m256 silu(__m256 x) {
  return _mm256_mul_ps(x, sigmoid(x));
}

}  // namespace forebay::simd
