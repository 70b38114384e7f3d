#include "kernels/activation.h"
#include "kernels/simd_avx2.h"

namespace forebay::activation_detail {

void silu_mul_avx2(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 8)
    simd::store(y + i, n - i,
                _mm256_mul_ps(simd::silu(simd::load(gate + i, n - i)), simd::load(up + i, n - i)));
}

void sigmoid_mul_avx2(const float* x, const float* gate, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 8)
    simd::store(y + i, n - i,
                _mm256_mul_ps(simd::load(x + i, n - i), simd::sigmoid(simd::load(gate + i, n - i))));
}

void silu_scaled_avx2(float scale, int64_t n, float* x) {
  const __m256 s = _mm256_set1_ps(scale);
  for (int64_t i = 0; i < n; i += 8)
    simd::store(x + i, n - i, simd::silu(_mm256_mul_ps(simd::load(x + i, n - i), s)));
}

}  // namespace forebay::activation_detail
