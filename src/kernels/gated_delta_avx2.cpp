// Two passes over the state: decay and recall, then correct and read. Columns go 32 at a time, so that
// four accumulators stay in registers; the sum over i is in order for every column.
#include <algorithm>

#include "kernels/gated_delta.h"
#include "kernels/simd_avx2.h"

namespace forebay::gated_delta_detail {
namespace {

template <int kVectors>
void columns(int k_dim, int v_dim, int j0, const float* q, const float* k, const float* v, float decay,
             float beta, float* state, float* out) {
  const __m256 a = _mm256_set1_ps(decay);
  __m256 acc[kVectors];
  for (auto& x : acc) x = _mm256_setzero_ps();
  for (int i = 0; i < k_dim; ++i) {
    float* row = state + static_cast<int64_t>(i) * v_dim + j0;
    const __m256 ki = _mm256_set1_ps(k[i]);
    for (int c = 0; c < kVectors; ++c) {
      const int left = v_dim - j0 - 8 * c;
      const __m256 s = _mm256_mul_ps(simd::load(row + 8 * c, left), a);
      simd::store(row + 8 * c, left, s);
      acc[c] = _mm256_fmadd_ps(s, ki, acc[c]);
    }
  }
  __m256 delta[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    const __m256 target = simd::load(v + j0 + 8 * c, v_dim - j0 - 8 * c);
    delta[c] = _mm256_mul_ps(_mm256_set1_ps(beta), _mm256_sub_ps(target, acc[c]));
    acc[c] = _mm256_setzero_ps();
  }
  for (int i = 0; i < k_dim; ++i) {
    float* row = state + static_cast<int64_t>(i) * v_dim + j0;
    const __m256 ki = _mm256_set1_ps(k[i]);
    const __m256 qi = _mm256_set1_ps(q[i]);
    for (int c = 0; c < kVectors; ++c) {
      const int left = v_dim - j0 - 8 * c;
      const __m256 s = _mm256_fmadd_ps(ki, delta[c], simd::load(row + 8 * c, left));
      simd::store(row + 8 * c, left, s);
      acc[c] = _mm256_fmadd_ps(s, qi, acc[c]);
    }
  }
  for (int c = 0; c < kVectors; ++c) simd::store(out + j0 + 8 * c, v_dim - j0 - 8 * c, acc[c]);
}

}  // namespace

void step_avx2(int k_dim, int v_dim, const float* q, const float* k, const float* v, float decay, float beta,
               float* state, float* /*delta*/, float* out) {
  int j = 0;
  for (; j + 32 <= v_dim; j += 32) columns<4>(k_dim, v_dim, j, q, k, v, decay, beta, state, out);
  for (; j < v_dim; j += 8) columns<1>(k_dim, v_dim, j, q, k, v, decay, beta, state, out);
}

}  // namespace forebay::gated_delta_detail
