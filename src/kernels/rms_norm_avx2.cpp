#include <cmath>

#include "kernels/rms_norm.h"
#include "kernels/simd_avx2.h"

namespace forebay::rms_norm_detail {

void row_avx2(const float* x, const float* weight, int64_t n, float inv_n, float eps, float scale, float* y) {
  const float factor = scale / std::sqrt(simd::dot(x, x, n) * inv_n + eps);
  const __m256 v = _mm256_set1_ps(factor);
  for (int64_t i = 0; i < n; i += 8) {
    __m256 out = _mm256_mul_ps(simd::load(x + i, n - i), v);
    if (weight != nullptr) out = _mm256_mul_ps(out, simd::load(weight + i, n - i));
    simd::store(y + i, n - i, out);
  }
}

}  // namespace forebay::rms_norm_detail
