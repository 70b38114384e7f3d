#include "kernels/matmul.h"

#include <algorithm>

#include "core/ensure.h"

namespace forebay {

void matmul_task(KernelContext& ctx, int thread, const MatrixView& w, int64_t n0, int64_t n1,
                 RowSet<const float> x, int64_t T, RowSet<float> y) {
  float* scratch = ctx.scratch(thread, matmul_detail::kRowsPerTile * w.n_cols);
  if (ctx.isa() == Isa::kReference)
    matmul_detail::task_ref(w, n0, n1, x, T, y, scratch);
  else
    matmul_detail::task_avx2(w, n0, n1, x, T, y, scratch);
}

void matmul(KernelContext& ctx, const MatrixView& w, TensorView<const float> x, TensorView<float> y) {
  ENSURE(x.cols == w.n_cols && y.cols == w.n_rows && x.rows == y.rows, "matmul shapes");
  if (x.rows == 0) return;
  // About 16k multiply-adds a task: above the cost of waking a thread, small enough to balance.
  const int64_t grain =
      std::max<int64_t>(matmul_detail::kRowsPerTile, (16384 / (w.n_cols * x.rows) + 7) / 8 * 8);
  ctx.pool().parallel_for(w.n_rows, grain, [&](int64_t n0, int64_t n1, int thread) {
    matmul_task(ctx, thread, w, n0, n1, {x.data, x.stride}, x.rows, {y.data, y.stride});
  });
}

}  // namespace forebay
