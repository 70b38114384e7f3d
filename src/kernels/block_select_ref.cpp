#include <algorithm>

#include "kernels/block_select.h"

namespace forebay::block_select_detail {

void score_ref(const float* q, int n_heads, int dim, const float* keys, int64_t n_keys, float* score) {
  for (int64_t b = 0; b < n_keys; ++b) {
    double sum = 0;
    for (int j = 0; j < n_heads; ++j) {
      double dot = 0;
      for (int d = 0; d < dim; ++d) dot += static_cast<double>(q[j * dim + d]) * keys[b * dim + d];
      sum += std::max(dot, 0.0);
    }
    score[b] = static_cast<float>(sum);
  }
}

}  // namespace forebay::block_select_detail
