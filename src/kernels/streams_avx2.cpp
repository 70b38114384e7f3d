#include "kernels/simd_avx2.h"
#include "kernels/streams.h"

namespace forebay::streams_detail {

void read_row_avx2(int n_streams, int64_t D, const float* gate, const float* normed, float* x) {
  const __m256 share = _mm256_set1_ps(1.0f / static_cast<float>(n_streams));
  for (int64_t d = 0; d < D; d += 8) {
    __m256 sum = _mm256_setzero_ps();
    for (int s = 0; s < n_streams; ++s)
      sum = _mm256_fmadd_ps(simd::sigmoid(simd::load(gate + s * D + d, D - d)),
                            simd::load(normed + s * D + d, D - d), sum);
    simd::store(x + d, D - d, _mm256_mul_ps(sum, share));
  }
}

}  // namespace forebay::streams_detail
