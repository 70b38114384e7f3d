#include <algorithm>
#include <limits>

#include "kernels/attention.h"
#include "kernels/simd_avx2.h"

namespace forebay::attention_detail {

void head_avx2(const float* q, const float* keys, const float* values, int64_t stride, int head_dim,
               float scale, std::span<const CellRange> ranges, float* scores, float* out) {
  float max_score = -std::numeric_limits<float>::infinity();
  int64_t n = 0;
  for (const CellRange& range : ranges)
    for (int64_t c = range.begin; c < range.end; ++c) {
      scores[n] = simd::dot(q, keys + c * stride, head_dim) * scale;
      // A NaN score must survive: std::max would drop it.
      max_score = scores[n] <= max_score ? max_score : scores[n];
      ++n;
    }

  const __m256 shift = _mm256_set1_ps(max_score);
  for (int64_t i = 0; i < n; i += 8)
    simd::store(scores + i, n - i, simd::exp(_mm256_sub_ps(simd::load(scores + i, n - i), shift)));
  float total = 0;
  for (int64_t i = 0; i < n; ++i) total += scores[i];

  for (int d = 0; d < head_dim; d += 32) {
    const int vectors = std::min(4, (head_dim - d + 7) / 8);
    __m256 acc[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t i = 0;
    for (const CellRange& range : ranges)
      for (int64_t c = range.begin; c < range.end; ++c) {
        const __m256 p = _mm256_set1_ps(scores[i++]);
        const float* v = values + c * stride + d;
        for (int b = 0; b < vectors; ++b)
          acc[b] = _mm256_fmadd_ps(p, simd::load(v + 8 * b, head_dim - d - 8 * b), acc[b]);
      }
    const __m256 inverse = _mm256_set1_ps(1.0f / total);
    for (int b = 0; b < vectors; ++b)
      simd::store(out + d + 8 * b, head_dim - d - 8 * b, _mm256_mul_ps(acc[b], inverse));
  }
}

}  // namespace forebay::attention_detail
