#include "kernels/block_select.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace forebay {
namespace {

constexpr int kBits = 11;
constexpr size_t kBins = size_t{1} << kBits;
constexpr size_t kTables = 4;  // neighbours often fall into one bin: counting them apart does not wait

/// The n_keep-th largest key, and how many keys are larger or equal.
struct Cut {
  uint32_t key = 0;
  int64_t n_above = 0;
  int64_t n_equal = 0;
};

using FindFn = decltype(&block_select_detail::find_ref);

/// Counts the upper bits, then selects among the keys of one bin. `count` holds kTables * kBins and `few` as
/// many as there are keys.
Cut find_cut(FindFn find, std::span<const uint32_t> keys, int64_t n_keep, uint32_t* count, uint32_t* few) {
  std::fill_n(count, kTables * kBins, 0u);
  for (size_t b = 0; b < keys.size(); ++b) ++count[b % kTables * kBins + (keys[b] >> (32 - kBits))];
  const auto in_bin = [&](uint32_t bin) {
    int64_t n = 0;
    for (size_t t = 0; t < kTables; ++t) n += count[t * kBins + bin];
    return n;
  };
  Cut cut;
  uint32_t bin = kBins - 1;
  for (int64_t n = in_bin(bin); cut.n_above + n < n_keep; n = in_bin(--bin)) cut.n_above += n;
  const uint32_t least = bin << (32 - kBits), most = least | ((1u << (32 - kBits)) - 1);
  const size_t n_few = find(keys.data(), keys.size(), least, most, few);
  for (size_t i = 0; i < n_few; ++i) few[i] = keys[few[i]];
  uint32_t* kth = few + (n_keep - cut.n_above - 1);
  std::nth_element(few, kth, few + n_few, std::greater<>());
  cut.key = *kth;
  for (size_t i = 0; i < n_few; ++i) {
    cut.n_above += few[i] > cut.key;
    cut.n_equal += few[i] == cut.key;
  }
  return cut;
}

/// Which of several equal scores are kept is open, and many are exactly 0 (no head agrees). Partitioning by
/// value alone around the k-th place is what the reference implementation's top-k does, with the same
/// standard library: the same blocks are kept.
void keep_with_ties(std::span<const float> score, int64_t n_keep, std::vector<uint32_t>& order) {
  order.resize(score.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](uint32_t a, uint32_t b) {
    return score[a] > score[b] || (std::isnan(score[a]) && !std::isnan(score[b]));
  };
  std::nth_element(order.begin(), order.begin() + n_keep - 1, order.end(), better);
  order.resize(n_keep);
  std::sort(order.begin(), order.end());
}

}  // namespace

size_t select_scratch(int64_t n_blocks) {
  return 2 * static_cast<size_t>(n_blocks) + kTables * kBins;
}

void score_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled, int64_t n_blocks,
                  float* score) {
  const auto fn = isa == Isa::kReference ? block_select_detail::score_ref : block_select_detail::score_avx2;
  fn(q, n_heads, dim, pooled, n_blocks, score);
}

void select_blocks(Isa isa, std::span<const float> score, int64_t n_keep, int block_cells, int64_t n_cells,
                   std::vector<uint32_t>& scratch, std::vector<CellRange>& ranges) {
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
  const auto n = static_cast<size_t>(n_blocks);
  scratch.resize(select_scratch(n_blocks));
  const std::span<uint32_t> keys(scratch.data(), n);
  uint32_t* few = scratch.data() + n;
  const bool plain = isa == Isa::kReference;
  const FindFn find = plain ? block_select_detail::find_ref : block_select_detail::find_avx2;
  (plain ? block_select_detail::keys_ref : block_select_detail::keys_avx2)(score.data(), n, keys.data());
  const Cut cut = find_cut(find, keys, n_keep, few + n, few);
  if (cut.n_above + cut.n_equal == n_keep) {
    const size_t n_kept = find(keys.data(), n, cut.key, UINT32_MAX, few);
    for (size_t i = 0; i < n_kept; ++i) push_block(few[i]);
  } else {
    keep_with_ties(score, n_keep, scratch);
    for (const uint32_t b : scratch) push_block(b);
  }
  push(n_blocks * block_cells, n_cells);
}

}  // namespace forebay
