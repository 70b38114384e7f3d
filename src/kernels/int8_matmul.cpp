#include "kernels/int8_matmul.h"

#include <algorithm>

#include "kernels/int8_dot.h"
#include "kernels/int8_formats.h"

namespace forebay {
namespace {

using int8_detail::Ahead;
using int8_detail::Int8Kernels;
using int8_detail::Panel;
using int8_detail::Tile;

/// The rows of x that a task multiplies.
struct PickedRows {
  const Int8Rows& x;
  const int32_t* index;
  int64_t n;

  Int8Row operator[](int64_t t) const { return x.row(index != nullptr ? index[t] : t); }
};

/// Few x rows: the packed weights against each. A strip of them stays in the first-level cache meanwhile.
void run_matvecs(const Int8Kernels& kernels, const MatrixView& w, int64_t n0, int64_t n1, PickedRows x,
                 RowSet<float> y) {
  constexpr int64_t kStrip = 16;
  for (int64_t n = n0; n < n1; n += kStrip)
    for (int64_t t = 0; t < x.n; ++t) kernels.matvec(w, n, std::min(n + kStrip, n1), x[t], y.row(t));
}

/// Many x rows: packed side by side in tiles once, then each panel of weights, unpacked once, against all
/// tiles.
void run_panels(const Int8Kernels& kernels, int8_detail::TileFn multiply, int width, const MatrixView& w,
                int64_t n0, int64_t n1, PickedRows x, RowSet<float> y, float* scratch) {
  const int64_t K = w.n_cols;
  const Panel panel(scratch, K, width);
  float* tiles = scratch + Panel::floats(K, width);
  for (int64_t t = 0; t < x.n; t += Tile::kRows) {
    const Int8Row rows[Tile::kRows] = {x[std::min(t, x.n - 1)],     x[std::min(t + 1, x.n - 1)],
                                       x[std::min(t + 2, x.n - 1)], x[std::min(t + 3, x.n - 1)],
                                       x[std::min(t + 4, x.n - 1)], x[std::min(t + 5, x.n - 1)],
                                       x[std::min(t + 6, x.n - 1)], x[std::min(t + 7, x.n - 1)]};
    int8_detail::pack_tile(rows, K, kernels.form.halves, tiles + t / Tile::kRows * Tile::floats(K));
  }
  // In whole lines, so that none is left out.
  const int64_t bytes_per_unit =
      (width * w.row_stride_bytes * (kernels.form.halves ? 16 : 32) / K + 63) / 64 * 64;
  alignas(64) float edge[Tile::kRows][int8_detail::kWidthVnni];
  for (int64_t n = n0; n < n1; n += width) {
    kernels.unpack(w, n, n1, panel);
    const bool whole = n + width <= n1;
    const Ahead next{n + width < n1 ? w.row(n + width) : nullptr, n + width < n1 ? bytes_per_unit : 0};
    for (int64_t t = 0; t < x.n; t += Tile::kRows) {
      const auto rows = static_cast<int>(std::min<int64_t>(Tile::kRows, x.n - t));
      float* to[Tile::kRows];
      for (int i = 0; i < rows; ++i) to[i] = whole ? y.row(t + i) + n : edge[i];
      multiply(panel, kernels.form, K, tiles + t / Tile::kRows * Tile::floats(K), rows, to,
               t == 0 ? next : Ahead{});
      if (whole) continue;
      for (int i = 0; i < rows; ++i) std::copy(edge[i], edge[i] + (n1 - n), y.row(t + i) + n);
    }
  }
}

const Int8Kernels& kernels_of(const KernelContext& ctx, DType type) {
  return ctx.use_vnni() ? *int8_detail::find_kernels_vnni(type) : *int8_detail::find_kernels_avx2(type);
}

int panel_width(const KernelContext& ctx) {
  return ctx.use_vnni() ? int8_detail::kWidthVnni : int8_detail::kWidthAvx2;
}

}  // namespace

bool reads_int8(const KernelContext& ctx, DType type) {
  return ctx.activations() == Activations::kInt8 && find_int8_format(type) != nullptr;
}

void round_rows(KernelContext& ctx, TensorView<const float> x, Int8Rows& out) {
  out.resize(x.rows, x.cols);
  const int64_t grain = std::max<int64_t>(1, 16384 / x.cols);
  ctx.pool().parallel_for(x.rows, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) round_to_int8(ctx.isa(), x.row(t), 0, x.cols, out.row(t));
  });
}

int64_t int8_scratch(const KernelContext& ctx, const MatrixView& w, int64_t T) {
  if (ctx.isa() == Isa::kReference) return 0;
  const Int8Kernels& kernels = kernels_of(ctx, w.type);
  if (T < kernels.panel_rows) return 0;
  const int64_t n_tiles = (T + Tile::kRows - 1) / Tile::kRows;
  return Panel::floats(w.n_cols, panel_width(ctx)) + n_tiles * Tile::floats(w.n_cols);
}

void int8_task(KernelContext& ctx, int thread, const MatrixView& w, int64_t n0, int64_t n1, const Int8Rows& x,
               const int32_t* index, int64_t T, RowSet<float> y) {
  const PickedRows rows{x, index, T};
  if (ctx.isa() == Isa::kReference) {
    for (int64_t t = 0; t < T; ++t)
      for (int64_t n = n0; n < n1; ++n) y.row(t)[n] = int8_detail::dot_ref(w, n, rows[t]);
    return;
  }
  const Int8Kernels& kernels = kernels_of(ctx, w.type);
  if (T < kernels.panel_rows) {
    run_matvecs(kernels, w, n0, n1, rows, y);
    return;
  }
  run_panels(kernels, ctx.use_vnni() ? int8_detail::tile_vnni : int8_detail::tile_avx2, panel_width(ctx), w,
             n0, n1, rows, y, ctx.scratch(thread, int8_scratch(ctx, w, T)));
}

}  // namespace forebay
