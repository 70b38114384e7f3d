/// Softmax attention of window rows over chosen cells of a key/value cache.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "kernels/kv_rows.h"
#include "tensor/view.h"

namespace forebay {

/// Cells [begin, end) of a sequence.
struct CellRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct AttentionShape {
  int n_heads = 0;
  int n_kv_heads = 0;  // query head h reads K/V head h / (n_heads / n_kv_heads)
  int head_dim = 0;
  float scale = 1.0f;  // of q.k
};

/// out[t,h,:] = sum_c softmax_c(scale * q[t,h,:] . K[c]) V[c] over the cells of row t's ranges.
///
/// q_TH, out_TH  [T][n_heads * head_dim], may be the same buffer. keys, values  of n_kv_heads heads, alike in
/// type. ranges        one list per row, ascending and disjoint, not empty. Cells are visited in order, in
/// segments of attention_detail::kSegmentCells visited cells that are joined in order: a row's bits depend on
/// its own query and cells alone, and memory grows with segments, not with cells. The reference does it in
/// one pass, in f64.
void attend(KernelContext& ctx, const AttentionShape& shape, TensorView<const float> q_TH, const KvRows& keys,
            const KvRows& values, std::span<const std::span<const CellRange>> ranges,
            TensorView<float> out_TH);

/// Takes the memory that attend() of a few rows needs while they see at most n_cells.
void reserve_attention(KernelContext& ctx, const AttentionShape& shape, int64_t n_cells);

namespace attention_detail {
/// One head of one row, reading K/V head `kv`. `scores` holds one float per visited cell.
void head_ref(const float* q, const KvRows& keys, const KvRows& values, int kv, float scale,
              std::span<const CellRange> ranges, float* scores, float* out);

inline constexpr int64_t kSegmentCells = 512;
/// Queries are computed four at a time; a segment has at most this many.
inline constexpr int kMaxQueries = 32;

/// Queries that read the same cells of one K/V head: query i sees the first n_seen[i] of `cells`.
struct Segment {
  const float* q[kMaxQueries];
  int64_t n_seen[kMaxQueries];
  int n_queries = 0;
  const int32_t* cells = nullptr;
  int64_t n_cells = 0;  // at most kSegmentCells, at least the largest n_seen
};

/// Softmax numerator and denominator relative to the largest score.
struct Partial {
  float max = 0;
  float sum = 0;
  float* out = nullptr;  // [head_dim]
};

/// Fills to[i] of every query that sees a cell; the others' are undefined. `scratch` holds
/// segment_scratch(head_dim) floats.
void segment_avx2(const Segment& segment, const KvRows& keys, const KvRows& values, int kv, float scale,
                  float* scratch, Partial* to);
int64_t segment_scratch(int head_dim);

/// `into` becomes the partial of its cells and then those of `next`.
void join_avx2(const Partial& next, int head_dim, Partial& into);
/// out = numerator / denominator
void finish_avx2(const Partial& all, int head_dim, float* out);
}  // namespace attention_detail

}  // namespace forebay
