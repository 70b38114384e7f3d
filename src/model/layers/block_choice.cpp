// Which cells a row of block-sparse attention sees. Blocks that cannot be among the best are left out by an
// 8-bit copy of their keys (kernels/block_codes.h), the others are scored exactly: what is chosen is what
// scoring all of them would choose.
#include <algorithm>

#include "kernels/block_codes.h"
#include "kernels/block_select.h"
#include "model/layers/layers.h"

namespace forebay {
namespace {

// With fewer blocks for each that is kept, too few are left out.
constexpr int64_t kWorthBounds = 4;

/// One layer's blocks and the rows of one part.
class BlockChoice {
 public:
  BlockChoice(LayerContext& lc, const Batch::Part& part, int block_cells, const AttentionState& state)
      : lc_(lc),
        part_(part),
        state_(state),
        block_cells_(block_cells),
        n_heads_(lc.config.indexer.n_heads),
        dim_(lc.config.indexer.head_dim),
        n_keep_(lc.config.indexer.top_k_cells / block_cells) {}

  bool sees_all(int64_t i) const { return n_blocks(i) <= n_keep_; }
  int64_t n_cells(int64_t i) const { return part_.first_cell + i + 1; }

  /// Room for the longest context at once: it must not grow while decoding.
  void reserve(int thread) {
    const size_t most = state_.pooled.size() / static_cast<size_t>(dim_) + BlockCodes::kTile;
    BlockScratch& s = lc_.scratch.blocks[thread];
    s.low.reserve(most);
    s.high.reserve(most);
    s.keys.reserve(select_scratch(static_cast<int64_t>(most)));
    s.among.reserve(most);  // twice the blocks that are found, which are at most half of all
    s.query.reserve(n_heads_, dim_);
  }

  /// Ranges of row i. With `split`, scores are found by all threads together.
  void choose(int64_t i, int thread, bool split) {
    BlockScratch& s = lc_.scratch.blocks[thread];
    std::vector<CellRange>& ranges = lc_.scratch.ranges[part_.first_row + i];
    const auto n = static_cast<size_t>(n_blocks(i));
    if (choose_by_bounds(i, s, split, ranges)) return;
    s.low.resize(n);
    over(n_blocks(i), 64, split, [&](int64_t begin, int64_t end) {
      score_blocks(lc_.kernels.isa(), query(i), n_heads_, dim_, state_.pooled.data() + begin * dim_,
                   end - begin, s.low.data() + begin);
    });
    select_blocks(lc_.kernels.isa(), s.low, n_keep_, block_cells_, n_cells(i), s.keys, ranges);
  }

 private:
  int64_t n_blocks(int64_t i) const { return n_cells(i) / block_cells_; }
  const float* query(int64_t i) const { return lc_.scratch.index_q.row(part_.first_row + i); }

  template <typename Body>
  void over(int64_t n, int64_t grain, bool split, Body body) {
    if (split)
      lc_.kernels.pool().parallel_for(n, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
    else
      body(0, n);
  }

  bool choose_by_bounds(int64_t i, BlockScratch& s, bool split, std::vector<CellRange>& ranges) {
    const int64_t n = n_blocks(i);
    const Isa isa = lc_.kernels.isa();
    if (isa == Isa::kReference || n < kWorthBounds * n_keep_ || state_.n_coded < n ||
        !encode_query(query(i), n_heads_, dim_, s.query))
      return false;
    const int64_t n_tiles = BlockCodes::n_tiles(n);
    s.low.resize(static_cast<size_t>(n_tiles * BlockCodes::kTile));
    s.high.resize(s.low.size());
    over(n_tiles, 16, split, [&](int64_t begin, int64_t end) {
      bound_scores(isa, lc_.kernels.use_vnni(), s.query, state_.codes, begin, end, s.low.data(),
                   s.high.data());
    });
    const auto found =
        possible_blocks(isa, std::span(s.low).first(n), std::span(s.high).first(n), n_keep_, s.keys);
    if (static_cast<int64_t>(found.size()) > n / 2) return false;
    const std::span<float> score = std::span(s.low).first(found.size());
    score_some_blocks(isa, query(i), n_heads_, dim_, state_.pooled.data(), found, score.data());
    return select_among(isa, found, score, n, n_keep_, block_cells_, n_cells(i), s.among, ranges);
  }

  LayerContext& lc_;
  const Batch::Part& part_;
  const AttentionState& state_;
  int block_cells_, n_heads_, dim_;
  int64_t n_keep_;
};

/// Codes of what was pooled since they were last asked for, or came from elsewhere.
void encode_new_blocks(const LayerContext& lc, int64_t n_blocks, AttentionState& state) {
  if (state.codes.tiles == nullptr || lc.kernels.isa() == Isa::kReference || n_blocks <= state.n_coded)
    return;
  const int64_t first = state.n_coded;
  lc.kernels.pool().parallel_for(n_blocks - first, 64, [&](int64_t begin, int64_t end, int) {
    encode_blocks(state.pooled.data(), first + begin, first + end, state.codes);
  });
  state.n_coded = n_blocks;
}

}  // namespace

void choose_cells(LayerContext& lc, const Batch::Part& part, int block_cells, AttentionState& state) {
  Scratch& s = lc.scratch;
  const auto note = [&](int64_t i) { s.range_spans[part.first_row + i] = s.ranges[part.first_row + i]; };
  if (block_cells == 0) {
    for (int64_t i = 0; i < part.n_rows; ++i) {
      s.ranges[part.first_row + i].assign(1, {0, part.first_cell + i + 1});
      note(i);
    }
    return;
  }
  const int64_t n_keep = lc.config.indexer.top_k_cells / block_cells;
  if (const int64_t n_blocks = (part.first_cell + part.n_rows) / block_cells;
      n_blocks >= kWorthBounds * n_keep)
    encode_new_blocks(lc, n_blocks, state);
  BlockChoice blocks(lc, part, block_cells, state);
  const auto choose = [&](int64_t i, int thread, bool split) {
    std::vector<CellRange>& ranges = s.ranges[part.first_row + i];
    ranges.reserve(static_cast<size_t>(n_keep) + 1);
    if (blocks.sees_all(i))
      ranges.assign(1, {0, blocks.n_cells(i)});
    else
      blocks.choose(i, thread, split);
    note(i);
  };
  if (part.n_rows == 1) {
    blocks.reserve(0);
    choose(0, 0, /*split=*/true);
    return;
  }
  lc.kernels.pool().parallel_for(part.n_rows, 1, [&](int64_t begin, int64_t end, int thread) {
    blocks.reserve(thread);
    for (int64_t i = begin; i < end; ++i) choose(i, thread, /*split=*/false);
  });
}

}  // namespace forebay
