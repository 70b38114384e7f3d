#include "kernels/block_select.h"

#include <algorithm>
#include <bit>
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

void push_range(std::vector<CellRange>& ranges, int64_t begin, int64_t end) {
  if (begin == end) return;
  if (!ranges.empty() && ranges.back().end == begin)
    ranges.back().end = end;
  else
    ranges.push_back({begin, end});
}

/// What keys_ref made this of.
float value_of(uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

}  // namespace

size_t select_scratch(int64_t n_blocks) {
  return 2 * static_cast<size_t>(n_blocks) + kTables * kBins;
}

void score_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled, int64_t n_blocks,
                  float* score) {
  const auto fn = isa == Isa::kReference ? block_select_detail::score_ref : block_select_detail::score_avx2;
  fn(q, n_heads, dim, pooled, nullptr, n_blocks, score);
}

void score_some_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled,
                       std::span<const uint32_t> ids, float* score) {
  const auto fn = isa == Isa::kReference ? block_select_detail::score_ref : block_select_detail::score_avx2;
  fn(q, n_heads, dim, pooled, ids.data(), static_cast<int64_t>(ids.size()), score);
}

std::span<const uint32_t> possible_blocks(Isa isa, std::span<const float> low, std::span<const float> high,
                                          int64_t n_keep, std::vector<uint32_t>& scratch) {
  namespace detail = block_select_detail;
  const size_t n = low.size();
  scratch.resize(select_scratch(static_cast<int64_t>(n)));
  uint32_t *keys = scratch.data(), *found = keys + n;
  const bool plain = isa == Isa::kReference;
  (plain ? detail::keys_ref : detail::keys_avx2)(low.data(), n, keys);
  const FindFn find = plain ? detail::find_ref : detail::find_avx2;
  const Cut cut = find_cut(find, {keys, n}, n_keep, found + n, found);
  // n_keep scores are at least the n_keep-th of the lower bounds: what cannot reach it is not among them.
  const float least = value_of(cut.key);
  const auto fn = plain ? detail::find_at_least_ref : detail::find_at_least_avx2;
  return {found, fn(high.data(), n, least, found)};
}

bool select_among(Isa isa, std::span<const uint32_t> ids, std::span<const float> score, int64_t n_blocks,
                  int64_t n_keep, int block_cells, int64_t n_cells, std::vector<uint32_t>& scratch,
                  std::vector<CellRange>& ranges) {
  const size_t n = ids.size();
  scratch.resize(2 * n);
  uint32_t *keys = scratch.data(), *order = keys + n;
  (isa == Isa::kReference ? block_select_detail::keys_ref : block_select_detail::keys_avx2)(score.data(), n,
                                                                                            keys);
  std::copy_n(keys, n, order);
  std::nth_element(order, order + n_keep - 1, order + n, std::greater<>());
  const uint32_t last = order[n_keep - 1];
  if (std::count_if(keys, keys + n, [&](uint32_t key) { return key >= last; }) != n_keep) return false;
  ranges.clear();
  for (size_t i = 0; i < n; ++i)
    if (keys[i] >= last)
      push_range(ranges, ids[i] * int64_t{block_cells}, (ids[i] + 1) * int64_t{block_cells});
  push_range(ranges, n_blocks * block_cells, n_cells);
  return true;
}

void select_blocks(Isa isa, std::span<const float> score, int64_t n_keep, int block_cells, int64_t n_cells,
                   std::vector<uint32_t>& scratch, std::vector<CellRange>& ranges) {
  const auto n_blocks = static_cast<int64_t>(score.size());
  ranges.clear();
  const auto push = [&](int64_t begin, int64_t end) { push_range(ranges, begin, end); };
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
