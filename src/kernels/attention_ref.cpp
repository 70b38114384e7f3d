#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.h"

namespace forebay::attention_detail {

void head_ref(const float* q, const KvRows& keys, const KvRows& values, int kv, float scale,
              std::span<const CellRange> ranges, float* scores, float* out) {
  double max_score = -std::numeric_limits<double>::infinity();
  const int head_dim = keys.head_dim;
  std::vector<float> row(head_dim);
  int64_t n = 0;
  for (const CellRange& range : ranges)
    for (int64_t c = range.begin; c < range.end; ++c) {
      kv_rows_detail::read_head_ref(keys, c, kv, row.data());
      double dot = 0;
      for (int d = 0; d < head_dim; ++d) dot += static_cast<double>(q[d]) * row[d];
      scores[n] = static_cast<float>(dot * scale);
      max_score = std::max<double>(max_score, scores[n++]);
    }
  double total = 0;
  std::vector<double> sum(head_dim, 0.0);
  n = 0;
  for (const CellRange& range : ranges)
    for (int64_t c = range.begin; c < range.end; ++c) {
      const double p = std::exp(scores[n++] - max_score);
      total += p;
      kv_rows_detail::read_head_ref(values, c, kv, row.data());
      for (int d = 0; d < head_dim; ++d) sum[d] += p * row[d];
    }
  for (int d = 0; d < head_dim; ++d) out[d] = static_cast<float>(sum[d] / total);
}

}  // namespace forebay::attention_detail
