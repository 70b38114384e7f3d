#include "kernels/matmul.h"

#include <algorithm>

#include "core/ensure.h"
#include "kernels/int8_matmul.h"

namespace forebay {
namespace {

/// Rows of a task are a multiple of this: whole panels of every version.
constexpr int64_t kTileRows = 16;
int64_t tiles_of(const MatrixView& w) {
  return (w.n_rows + kTileRows - 1) / kTileRows;
}

}  // namespace

int64_t matmul_scratch(const KernelContext& ctx, const MatrixView& w, int64_t T) {
  return reads_int8(ctx, w.type) ? int8_scratch(ctx, w, T) : matmul_detail::kRowsPerTile * w.n_cols;
}

void matmul_task(KernelContext& ctx, int thread, const MatrixView& w, int64_t n0, int64_t n1,
                 RowSet<const float> x, int64_t T, RowSet<float> y) {
  float* scratch = ctx.scratch(thread, matmul_detail::kRowsPerTile * w.n_cols);
  if (ctx.isa() == Isa::kReference)
    matmul_detail::task_ref(w, n0, n1, x, T, y, scratch);
  else
    matmul_detail::task_avx2(w, n0, n1, x, T, y, scratch);
}

void matmul(KernelContext& ctx, const MatrixView& w, TensorView<const float> x, TensorView<float> y) {
  const MatmulOutput output{w, y};
  matmul(ctx, {&output, 1}, x);
}

void matmul(KernelContext& ctx, std::span<const MatmulOutput> outputs, TensorView<const float> x) {
  bool round = false;
  int64_t n_tiles = 0;
  int64_t scratch = 0;
  for (const MatmulOutput& o : outputs) {
    ENSURE(x.cols == o.w.n_cols && o.y.cols == o.w.n_rows && x.rows == o.y.rows, "matmul shapes");
    round = round || reads_int8(ctx, o.w.type);
    n_tiles += tiles_of(o.w);
    scratch = std::max(scratch, matmul_scratch(ctx, o.w, x.rows));
  }
  if (x.rows == 0) return;
  ctx.reserve_scratch(scratch);
  if (round) round_rows(ctx, x, ctx.int8_inputs());
  const auto rows = [&](const MatmulOutput& o, int64_t n0, int64_t n1, int thread) {
    const RowSet<float> y{o.y.data, o.y.stride};
    if (reads_int8(ctx, o.w.type))
      int8_task(ctx, thread, o.w, n0, n1, ctx.int8_inputs(), nullptr, x.rows, y);
    else
      matmul_task(ctx, thread, o.w, n0, n1, {x.data, x.stride}, x.rows, y);
  };
  // About 32k multiply-adds a task: above the cost of waking a thread, small enough to balance.
  const int64_t grain = std::max<int64_t>(1, 32768 / (x.cols * x.rows * kTileRows));
  ctx.pool().parallel_for(n_tiles, grain, [&](int64_t begin, int64_t end, int thread) {
    for (const MatmulOutput& o : outputs) {
      const int64_t tiles = tiles_of(o.w);
      if (begin < tiles && end > 0)
        rows(o, std::max<int64_t>(begin, 0) * kTileRows, std::min(end * kTileRows, o.w.n_rows), thread);
      begin -= tiles;
      end -= tiles;
    }
  });
}

}  // namespace forebay
