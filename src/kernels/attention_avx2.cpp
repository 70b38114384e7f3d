#include <algorithm>
#include <limits>

#include "kernels/attention.h"
#include "kernels/simd_avx2.h"

namespace forebay::attention_detail {
namespace {

/// One head of a cell: in place where it is f32, else decoded to `to`.
const float* row_of(const KvRows& rows, int64_t cell, int kv, float* to) {
  if (rows.type == KvType::kF32)
    return reinterpret_cast<const float*>(rows.values) + cell * rows.width() +
           static_cast<int64_t>(kv) * rows.head_dim;
  kv_rows_detail::read_head_avx2(rows, cell, kv, to);
  return to;
}

}  // namespace

void head_avx2(const float* q, const KvRows& keys, const KvRows& values, int kv, float scale,
               std::span<const CellRange> ranges, float* scores, float* out) {
  const int head_dim = keys.head_dim;
  int64_t n_cells = 0;
  for (const CellRange& range : ranges) n_cells += range.end - range.begin;
  float* row = scores + n_cells;
  float max_score = -std::numeric_limits<float>::infinity();
  int64_t n = 0;
  for (const CellRange& range : ranges)
    for (int64_t c = range.begin; c < range.end; ++c) {
      scores[n] = simd::dot(q, row_of(keys, c, kv, row), head_dim) * scale;
      // A NaN score must survive: std::max would drop it.
      max_score = scores[n] <= max_score ? max_score : scores[n];
      ++n;
    }

  const __m256 shift = _mm256_set1_ps(max_score);
  for (int64_t i = 0; i < n; i += 8)
    simd::store(scores + i, n - i, simd::exp(_mm256_sub_ps(simd::load(scores + i, n - i), shift)));
  float total = 0;
  for (int64_t i = 0; i < n; ++i) total += scores[i];

  std::fill(out, out + head_dim, 0.0f);
  int64_t i = 0;
  for (const CellRange& range : ranges)
    for (int64_t c = range.begin; c < range.end; ++c)
      simd::axpy(scores[i++], row_of(values, c, kv, row), out, head_dim);
  const __m256 inverse = _mm256_set1_ps(1.0f / total);
  for (int d = 0; d < head_dim; d += 8)
    simd::store(out + d, head_dim - d, _mm256_mul_ps(simd::load(out + d, head_dim - d), inverse));
}

}  // namespace forebay::attention_detail
