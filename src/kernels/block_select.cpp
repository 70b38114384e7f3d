#include "kernels/block_select.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace forebay {

void score_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled, int64_t n_blocks,
                  float* score) {
  const auto fn = isa == Isa::kReference ? block_select_detail::score_ref : block_select_detail::score_avx2;
  for (int64_t b = 0; b < n_blocks; ++b) score[b] = fn(q, n_heads, dim, pooled + b * dim);
}

void select_blocks(std::span<const float> score, int64_t n_keep, int block_cells, int64_t n_cells,
                   std::vector<int32_t>& order, std::vector<CellRange>& ranges) {
  const auto n_blocks = static_cast<int64_t>(score.size());
  n_keep = std::min(n_keep, n_blocks);
  order.resize(n_blocks);
  std::iota(order.begin(), order.end(), 0);
  if (n_keep < n_blocks) {
    // Many scores are exactly 0 (no head agrees), and which of those are kept is open. Partitioning by value
    // alone around the k-th place is what the reference implementation's top-k does, with the same
    // standard library: the same blocks are kept. NaN counts as best, so that it cannot hide.
    const auto better = [&](int32_t a, int32_t b) {
      return score[a] > score[b] || (std::isnan(score[a]) && !std::isnan(score[b]));
    };
    std::nth_element(order.begin(), order.begin() + n_keep - 1, order.end(), better);
    order.resize(n_keep);
    std::sort(order.begin(), order.end());
  }
  ranges.clear();
  auto push = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    if (!ranges.empty() && ranges.back().end == begin)
      ranges.back().end = end;
    else
      ranges.push_back({begin, end});
  };
  for (int32_t b : order)
    push(static_cast<int64_t>(b) * block_cells, static_cast<int64_t>(b + 1) * block_cells);
  push(n_blocks * block_cells, n_cells);
}

}  // namespace forebay
