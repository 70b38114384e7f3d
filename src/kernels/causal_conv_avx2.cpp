#include "kernels/causal_conv.h"
#include "kernels/simd_avx2.h"

namespace forebay::causal_conv_detail {

void row_avx2(const float* const* inputs, TensorView<const float> w, float* y) {
  for (int64_t c = 0; c < w.cols; c += 8) {
    const int64_t left = w.cols - c;
    __m256 sum = _mm256_setzero_ps();
    for (int64_t k = 0; k < w.rows; ++k)
      sum = _mm256_fmadd_ps(simd::load(w.row(k) + c, left), simd::load(inputs[k] + c, left), sum);
    simd::store(y + c, left, simd::silu(sum));
  }
}

}  // namespace forebay::causal_conv_detail
