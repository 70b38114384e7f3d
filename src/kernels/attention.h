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
/// type. ranges        one list per row, ascending and disjoint, not empty. Cells are visited in order: a
/// row's bits depend on its own query and cells alone.
void attend(KernelContext& ctx, const AttentionShape& shape, TensorView<const float> q_TH, const KvRows& keys,
            const KvRows& values, std::span<const std::span<const CellRange>> ranges,
            TensorView<float> out_TH);

namespace attention_detail {
/// One head of one row, reading K/V head `kv`. `scores` holds one float per visited cell and a row of K or V.
void head_ref(const float* q, const KvRows& keys, const KvRows& values, int kv, float scale,
              std::span<const CellRange> ranges, float* scores, float* out);
void head_avx2(const float* q, const KvRows& keys, const KvRows& values, int kv, float scale,
               std::span<const CellRange> ranges, float* scores, float* out);
}  // namespace attention_detail

}  // namespace forebay
