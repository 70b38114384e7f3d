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

}  // namespace

void score_avx2(const float* q, int n_heads, int dim, const float* keys, int64_t n_keys, float* score) {
  const __m256 zero = _mm256_setzero_ps();
  for (int64_t b = 0; b < n_keys; b += 2) {
    const float* first = keys + b * dim;
    const float* second = keys + std::min(b + 1, n_keys - 1) * dim;
    float one = 0, two = 0;
    for (int j = 0; j < n_heads; j += 4) {
      const float* head[4];
      for (int i = 0; i < 4; ++i) head[i] = q + std::min(j + i, n_heads - 1) * dim;
      alignas(32) float relu[8];
      // A NaN stays: max returns its second operand then.
      _mm256_store_ps(relu, _mm256_max_ps(zero, dots(head, dim, first, second)));
      for (int i = 0; i < std::min(4, n_heads - j); ++i) {
        one += relu[i];
        two += relu[i + 4];
      }
    }
    score[b] = one;
    if (b + 1 < n_keys) score[b + 1] = two;
  }
}

}  // namespace forebay::block_select_detail
