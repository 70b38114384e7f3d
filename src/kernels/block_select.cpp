#include "kernels/block_select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

namespace forebay {
namespace {

/// Floats as unsigned integers of the same order; NaN above all.
uint32_t key_of(float score) {
  if (std::isnan(score)) return 0xffffffffu;
  const auto bits = std::bit_cast<uint32_t>(score);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/// The n_keep-th largest key, and how many are larger: two passes over counters instead of a partition.
struct Cut {
  uint32_t key = 0;
  int64_t n_above = 0;
  int64_t n_equal = 0;
};
Cut find_cut(std::span<const float> score, int64_t n_keep, std::vector<int32_t>& scratch) {
  constexpr int kBits = 11;
  std::vector<int32_t>& count = scratch;
  count.assign(size_t{1} << kBits, 0);
  for (const float s : score) ++count[key_of(s) >> (32 - kBits)];
  Cut cut;
  uint32_t bin = (1u << kBits) - 1;
  while (cut.n_above + count[bin] < n_keep) cut.n_above += count[bin--];
  // The keys of that bin, selected among themselves.
  scratch.clear();
  for (const float s : score)
    if (const uint32_t key = key_of(s); key >> (32 - kBits) == bin)
      scratch.push_back(static_cast<int32_t>(key ^ 0x80000000u));
  const auto kth = scratch.begin() + (n_keep - cut.n_above - 1);
  std::nth_element(scratch.begin(), kth, scratch.end(), std::greater<>());
  const int32_t value = *kth;
  cut.key = static_cast<uint32_t>(value) ^ 0x80000000u;
  for (const int32_t v : scratch) {
    cut.n_above += v > value;
    cut.n_equal += v == value;
  }
  return cut;
}

/// Which of several equal scores are kept is open, and many are exactly 0 (no head agrees). Partitioning by
/// value alone around the k-th place is what the reference implementation's top-k does, with the same
/// standard library: the same blocks are kept.
void keep_with_ties(std::span<const float> score, int64_t n_keep, std::vector<int32_t>& order) {
  order.resize(score.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](int32_t a, int32_t b) {
    return score[a] > score[b] || (std::isnan(score[a]) && !std::isnan(score[b]));
  };
  std::nth_element(order.begin(), order.begin() + n_keep - 1, order.end(), better);
  order.resize(n_keep);
  std::sort(order.begin(), order.end());
}

}  // namespace

void score_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled, int64_t n_blocks,
                  float* score) {
  const auto fn = isa == Isa::kReference ? block_select_detail::score_ref : block_select_detail::score_avx2;
  fn(q, n_heads, dim, pooled, n_blocks, score);
}

void select_blocks(std::span<const float> score, int64_t n_keep, int block_cells, int64_t n_cells,
                   std::vector<int32_t>& order, std::vector<CellRange>& ranges) {
  const auto n_blocks = static_cast<int64_t>(score.size());
  ranges.clear();
  const auto push = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    if (!ranges.empty() && ranges.back().end == begin)
      ranges.back().end = end;
    else
      ranges.push_back({begin, end});
  };
  const auto push_block = [&](int64_t b) { push(b * block_cells, (b + 1) * block_cells); };
  if (n_keep >= n_blocks) {
    push(0, n_cells);
    return;
  }
  const Cut cut = find_cut(score, n_keep, order);
  if (cut.n_above + cut.n_equal == n_keep) {
    for (int64_t b = 0; b < n_blocks; ++b)
      if (key_of(score[b]) >= cut.key) push_block(b);
  } else {
    keep_with_ties(score, n_keep, order);
    for (const int32_t b : order) push_block(b);
  }
  push(n_blocks * block_cells, n_cells);
}

}  // namespace forebay
