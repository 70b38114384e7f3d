#include <algorithm>

#include "kernels/block_select.h"

namespace forebay::block_select_detail {

float score_ref(const float* q, int n_heads, int dim, const float* key) {
  double sum = 0;
  for (int j = 0; j < n_heads; ++j) {
    double dot = 0;
    for (int d = 0; d < dim; ++d) dot += static_cast<double>(q[j * dim + d]) * key[d];
    sum += std::max(dot, 0.0);
  }
  return static_cast<float>(sum);
}

}  // namespace forebay::block_select_detail
