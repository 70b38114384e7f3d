#include <algorithm>

#include "kernels/block_select.h"
#include "kernels/simd_avx2.h"

namespace forebay::block_select_detail {

float score_avx2(const float* q, int n_heads, int dim, const float* key) {
  float sum = 0;
  for (int j = 0; j < n_heads; ++j) sum += std::max(simd::dot(q + j * dim, key, dim), 0.0f);
  return sum;
}

}  // namespace forebay::block_select_detail
