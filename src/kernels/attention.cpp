#include "kernels/attention.h"

#include "core/ensure.h"

namespace forebay {

void attend(KernelContext& ctx, const AttentionShape& shape, TensorView<const float> q, const KvRows& keys,
            const KvRows& values, std::span<const std::span<const CellRange>> ranges, TensorView<float> out) {
  ENSURE(q.cols == static_cast<int64_t>(shape.n_heads) * shape.head_dim && out.cols == q.cols,
         "attend widths");
  ENSURE(static_cast<int64_t>(ranges.size()) == q.rows && out.rows == q.rows, "attend rows");
  ENSURE(keys.n_heads == shape.n_kv_heads && keys.head_dim == shape.head_dim, "attend keys");
  const int group = shape.n_heads / shape.n_kv_heads;
  const auto fn = ctx.isa() == Isa::kReference ? attention_detail::head_ref : attention_detail::head_avx2;
  ctx.pool().parallel_for(q.rows * shape.n_heads, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t t = task / shape.n_heads;
      const int64_t h = task % shape.n_heads;
      int64_t n_cells = 0;
      for (const CellRange& range : ranges[t]) n_cells += range.end - range.begin;
      ENSURE(n_cells > 0, "a row that sees no cell");
      // The output is accumulated in scratch: `out` may be the query itself.
      float* scratch = ctx.scratch(thread, n_cells + 2 * shape.head_dim);
      float* row_out = scratch + n_cells + shape.head_dim;
      fn(q.row(t) + h * shape.head_dim, keys, values, static_cast<int>(h / group), shape.scale, ranges[t],
         scratch, row_out);
      float* to = out.row(t) + h * shape.head_dim;
      for (int d = 0; d < shape.head_dim; ++d) to[d] = row_out[d];
    }
  });
}

}  // namespace forebay
