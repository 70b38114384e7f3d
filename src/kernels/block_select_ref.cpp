#include <algorithm>
#include <bit>

#include "kernels/block_select.h"

namespace forebay::block_select_detail {

void score_ref(const float* q, int n_heads, int dim, const float* keys, const uint32_t* ids, int64_t n_keys,
               float* score) {
  for (int64_t b = 0; b < n_keys; ++b) {
    const float* key = keys + (ids == nullptr ? b : ids[b]) * dim;
    double sum = 0;
    for (int j = 0; j < n_heads; ++j) {
      double dot = 0;
      for (int d = 0; d < dim; ++d) dot += static_cast<double>(q[j * dim + d]) * key[d];
      sum += std::max(dot, 0.0);
    }
    score[b] = static_cast<float>(sum);
  }
}

void keys_ref(const float* score, size_t n, uint32_t* keys) {
  for (size_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(score[i]);
    const uint32_t flip = static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u;
    keys[i] = (bits & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : bits ^ flip;
  }
}

size_t find_ref(const uint32_t* keys, size_t n, uint32_t least, uint32_t most, uint32_t* found) {
  size_t n_found = 0;
  for (size_t i = 0; i < n; ++i)
    if (keys[i] >= least && keys[i] <= most) found[n_found++] = static_cast<uint32_t>(i);
  return n_found;
}

size_t find_at_least_ref(const float* x, size_t n, float least, uint32_t* found) {
  size_t n_found = 0;
  for (size_t i = 0; i < n; ++i)
    if (x[i] >= least) found[n_found++] = static_cast<uint32_t>(i);
  return n_found;
}

}  // namespace forebay::block_select_detail
