// weight() of four numbers: the same operations in the same order, so the same bits. Nothing is fused.
#include "core/vectors.h"
#include "sampling/weight.h"

namespace forebay::sampling_detail {
namespace {

/// a + x * b
__m256d pair(double a, __m256d x, double b) {
  return _mm256_add_pd(_mm256_set1_pd(a), _mm256_mul_pd(x, _mm256_set1_pd(b)));
}

__m256d weight_of_four(__m256d x) {
  const __m256d there = _mm256_cmp_pd(x, _mm256_set1_pd(-708.0), _CMP_GE_OQ);
  const __m256d round = _mm256_set1_pd(0x1.8p52);
  const __m256d rounded = _mm256_add_pd(_mm256_mul_pd(x, _mm256_set1_pd(1.4426950408889634)), round);
  const __m256d k = _mm256_sub_pd(rounded, round);
  const __m256d high_part = _mm256_mul_pd(k, _mm256_set1_pd(6.93147180369123816490e-01));
  const __m256d low_part = _mm256_mul_pd(k, _mm256_set1_pd(1.90821492927058770002e-10));
  const __m256d r = _mm256_sub_pd(_mm256_sub_pd(x, high_part), low_part);
  const __m256d r2 = _mm256_mul_pd(r, r), r4 = _mm256_mul_pd(r2, r2);
  const __m256d p2 = pair(1.0 / 2, r, 1.0 / 6), p4 = pair(1.0 / 24, r, 1.0 / 120),
                p6 = pair(1.0 / 720, r, 1.0 / 5040);
  const __m256d p8 = pair(1.0 / 40320, r, 1.0 / 362880), p10 = pair(1.0 / 3628800, r, 1.0 / 39916800);
  const __m256d p12 = pair(1.0 / 479001600, r, 1.0 / 6227020800);
  const __m256d high = _mm256_add_pd(_mm256_add_pd(p8, _mm256_mul_pd(r2, p10)), _mm256_mul_pd(r4, p12));
  const __m256d middle = _mm256_add_pd(p4, _mm256_mul_pd(r2, p6));
  const __m256d inner =
      _mm256_add_pd(_mm256_add_pd(p2, _mm256_mul_pd(r2, middle)), _mm256_mul_pd(_mm256_mul_pd(r2, r4), high));
  const __m256d e_r = _mm256_add_pd(_mm256_set1_pd(1.0), _mm256_add_pd(r, _mm256_mul_pd(r2, inner)));
  const __m256i exponent =
      _mm256_slli_epi64(_mm256_add_epi64(_mm256_castpd_si256(rounded), _mm256_set1_epi64x(1023)), 52);
  return _mm256_and_pd(there, _mm256_mul_pd(e_r, _mm256_castsi256_pd(exponent)));
}

}  // namespace

void weights_avx2(const double* x, size_t n, double* out) {
  for (size_t i = 0; i < n; i += 4) _mm256_storeu_pd(out + i, weight_of_four(_mm256_loadu_pd(x + i)));
}

}  // namespace forebay::sampling_detail
