/// The block indexer of sparse attention: scores pooled keys, keeps the best blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"
#include "kernels/context.h"

namespace forebay {

/// score[b] = sum_j relu(q[j,:] . pooled[b,:]) for b in [0, n_blocks)
///
/// q  [n_heads][dim]; pooled  [n_blocks][dim] f32. A score does not depend on which blocks are scored with
/// it. The common factor 1/sqrt(dim) does not change the order.
void score_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled, int64_t n_blocks,
                  float* score);
/// The same scores, of blocks `ids` alone: score[i] is that of block ids[i].
void score_some_blocks(Isa isa, const float* q, int n_heads, int dim, const float* pooled,
                       std::span<const uint32_t> ids, float* score);

/// Cell ranges of the n_keep best blocks (n_keep >= 1; a function of the scores alone, ties included,
/// whatever the isa) and of the tail cells after the last complete block, merged where adjacent. `scratch`
/// grows.
void select_blocks(Isa isa, std::span<const float> score, int64_t n_keep, int block_cells, int64_t n_cells,
                   std::vector<uint32_t>& scratch, std::vector<CellRange>& ranges);
/// How many values `scratch` will have: for who wants to reserve them.
size_t select_scratch(int64_t n_blocks);

/// Where scores are only known to be in [low[b], high[b]] (kernels/block_codes.h): the blocks that may be
/// among the n_keep best, ascending; in `scratch`, valid until it is used again.
std::span<const uint32_t> possible_blocks(Isa isa, std::span<const float> low, std::span<const float> high,
                                          int64_t n_keep, std::vector<uint32_t>& scratch);
/// What select_blocks finds among n_blocks, from the scores of the `ids` that possible_blocks() named. False
/// where scores tie at the last place: which are kept then depends on all of them. `scratch` may not hold
/// ids.
bool select_among(Isa isa, std::span<const uint32_t> ids, std::span<const float> score, int64_t n_blocks,
                  int64_t n_keep, int block_cells, int64_t n_cells, std::vector<uint32_t>& scratch,
                  std::vector<CellRange>& ranges);

namespace block_select_detail {
/// Key i is keys[i], or keys[ids[i]] where ids are given.
void score_ref(const float* q, int n_heads, int dim, const float* keys, const uint32_t* ids, int64_t n_keys,
               float* score);
void score_avx2(const float* q, int n_heads, int dim, const float* keys, const uint32_t* ids, int64_t n_keys,
                float* score);

/// Floats as unsigned integers of the same order; NaN above all.
void keys_ref(const float* score, size_t n, uint32_t* keys);
void keys_avx2(const float* score, size_t n, uint32_t* keys);
/// Where keys are in [least, most], ascending; how many. `found` has room for n.
size_t find_ref(const uint32_t* keys, size_t n, uint32_t least, uint32_t most, uint32_t* found);
size_t find_avx2(const uint32_t* keys, size_t n, uint32_t least, uint32_t most, uint32_t* found);
/// Where values, none of them NaN, are at least `least`.
size_t find_at_least_ref(const float* x, size_t n, float least, uint32_t* found);
size_t find_at_least_avx2(const float* x, size_t n, float least, uint32_t* found);
}  // namespace block_select_detail

}  // namespace forebay
