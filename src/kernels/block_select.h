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

/// Cell ranges of the n_keep best blocks (n_keep >= 1; a function of the scores alone, ties included,
/// whatever the isa) and of the tail cells after the last complete block, merged where adjacent. `scratch`
/// grows.
void select_blocks(Isa isa, std::span<const float> score, int64_t n_keep, int block_cells, int64_t n_cells,
                   std::vector<uint32_t>& scratch, std::vector<CellRange>& ranges);
/// How many values `scratch` will have: for who wants to reserve them.
size_t select_scratch(int64_t n_blocks);

namespace block_select_detail {
void score_ref(const float* q, int n_heads, int dim, const float* keys, int64_t n_keys, float* score);
void score_avx2(const float* q, int n_heads, int dim, const float* keys, int64_t n_keys, float* score);

/// Floats as unsigned integers of the same order; NaN above all.
void keys_ref(const float* score, size_t n, uint32_t* keys);
void keys_avx2(const float* score, size_t n, uint32_t* keys);
/// Where keys are in [least, most], ascending; how many. `found` has room for n.
size_t find_ref(const uint32_t* keys, size_t n, uint32_t least, uint32_t most, uint32_t* found);
size_t find_avx2(const uint32_t* keys, size_t n, uint32_t least, uint32_t most, uint32_t* found);
}  // namespace block_select_detail

}  // namespace forebay
