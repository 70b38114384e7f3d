#include <algorithm>

#include "kernels/block_select.h"
#include "kernels/simd_avx2.h"
#include "kernels/transpose_avx2.h"

namespace forebay::block_select_detail {
namespace {

/// Lane i: the sum over acc[i].
FOREBAY_INLINE __m256 sums_of(const __m256* acc) {
  const auto fold = [&](int i) {
    return _mm256_add_ps(_mm256_permute2f128_ps(acc[i], acc[i + 4], 0x20),
                         _mm256_permute2f128_ps(acc[i], acc[i + 4], 0x31));
  };
  return _mm256_hadd_ps(_mm256_hadd_ps(fold(0), fold(1)), _mm256_hadd_ps(fold(2), fold(3)));
}

/// Dot products of four heads (missing ones repeat the last) with keys a and b, lane 4 * key + head.
FOREBAY_INLINE __m256 dots(const float* const* q, int dim, const float* a, const float* b) {
  __m256 acc[8];
  for (__m256& x : acc) x = _mm256_setzero_ps();
  for (int d = 0; d < dim; d += 8) {
    const __m256 va = simd::load(a + d, dim - d), vb = simd::load(b + d, dim - d);
    for (int j = 0; j < 4; ++j) {
      const __m256 vq = simd::load(q[j] + d, dim - d);
      acc[j] = _mm256_fmadd_ps(vq, va, acc[j]);
      acc[j + 4] = _mm256_fmadd_ps(vq, vb, acc[j + 4]);
    }
  }
  return sums_of(acc);
}

/// Lane 4 * key + head: dots that are above zero, of heads [j, j + 4); a NaN stays.
FOREBAY_INLINE __m256 agreement(const float* q, int n_heads, int j, int dim, const float* a, const float* b) {
  const float* head[4];
  for (int i = 0; i < 4; ++i) head[i] = q + std::min(j + i, n_heads - 1) * dim;
  const __m256 relu = _mm256_max_ps(_mm256_setzero_ps(), dots(head, dim, a, b));
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
  const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(n_heads - j), lane);
  return _mm256_and_ps(relu, _mm256_castsi256_ps(there));
}

}  // namespace

/// Four heads of a key as (0 + 1) + (2 + 3), then the next four.
void score_avx2(const float* q, int n_heads, int dim, const float* keys, int64_t n_keys, float* score) {
  for (int64_t b = 0; b < n_keys; b += 4) {
    const float* key[4];
    for (int i = 0; i < 4; ++i) key[i] = keys + std::min(b + i, n_keys - 1) * dim;
    __m256 sum = _mm256_setzero_ps();  // keys 0 2 0 2 | 1 3 1 3
    for (int j = 0; j < n_heads; j += 4) {
      const __m256 pairs = _mm256_hadd_ps(agreement(q, n_heads, j, dim, key[0], key[1]),
                                          agreement(q, n_heads, j, dim, key[2], key[3]));
      sum = _mm256_add_ps(sum, _mm256_hadd_ps(pairs, pairs));
    }
    const __m128 four = _mm_unpacklo_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    alignas(16) float to[4];
    _mm_store_ps(to, four);
    std::copy_n(to, std::min<int64_t>(4, n_keys - b), score + b);
  }
}

}  // namespace forebay::block_select_detail
