#include "kernels/int8_matmul.h"

#include <algorithm>

#include "kernels/int8_dot.h"
#include "kernels/int8_formats.h"

namespace forebay {
namespace {

using int8_detail::Int8Kernels;
using int8_detail::Panel;
using int8_detail::TileArgs;

/// From this many x rows on, unpacking a panel of weights once is cheaper than multiplying it packed for
/// each.
constexpr int64_t kPanelRows = 2;

/// Panels of weight rows, each against all x rows in tiles.
struct PanelLoop {
  const Int8Kernels* kernels;
  int8_detail::TileFn tile;
  int width;
  int tile_rows;

  void run(const MatrixView& w, int64_t n0, int64_t n1, const Int8Rows& x, const int32_t* index, int64_t T,
           RowSet<float> y, float* scratch) const {
    const Panel panel(scratch, w.n_cols, width);
    const TileArgs args{&panel, kernels->form, w.n_cols};
    alignas(64) float edge[int8_detail::kTileRowsVnni][int8_detail::kWidthVnni];
    for (int64_t n = n0; n < n1; n += width) {
      kernels->unpack(w, n, n1, panel);
      const bool whole = n + width <= n1;
      for (int64_t t0 = 0; t0 < T; t0 += tile_rows) {
        const auto rows = static_cast<int>(std::min<int64_t>(tile_rows, T - t0));
        Int8Row x_rows[int8_detail::kTileRowsVnni] = {at(x, index, t0, 0, rows), at(x, index, t0, 1, rows),
                                                      at(x, index, t0, 2, rows), at(x, index, t0, 3, rows),
                                                      at(x, index, t0, 4, rows), at(x, index, t0, 5, rows),
                                                      at(x, index, t0, 6, rows), at(x, index, t0, 7, rows)};
        float* to[int8_detail::kTileRowsVnni];
        for (int t = 0; t < rows; ++t) to[t] = whole ? y.row(t0 + t) + n : edge[t];
        tile(args, x_rows, rows, to);
        if (whole) continue;
        for (int t = 0; t < rows; ++t) std::copy(edge[t], edge[t] + (n1 - n), y.row(t0 + t) + n);
      }
    }
  }

  static Int8Row at(const Int8Rows& x, const int32_t* index, int64_t t0, int t, int rows) {
    const int64_t row = t0 + std::min(t, rows - 1);
    return x.row(index != nullptr ? index[row] : row);
  }
};

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

void int8_task(KernelContext& ctx, int thread, const MatrixView& w, int64_t n0, int64_t n1, const Int8Rows& x,
               const int32_t* index, int64_t T, RowSet<float> y) {
  const auto row = [&](int64_t t) { return x.row(index != nullptr ? index[t] : t); };
  if (ctx.isa() == Isa::kReference) {
    for (int64_t t = 0; t < T; ++t)
      for (int64_t n = n0; n < n1; ++n) y.row(t)[n] = int8_detail::dot_ref(w, n, row(t));
    return;
  }
  const bool vnni = ctx.use_vnni();
  const Int8Kernels* kernels =
      vnni ? int8_detail::find_kernels_vnni(w.type) : int8_detail::find_kernels_avx2(w.type);
  if (T < kPanelRows) {
    for (int64_t t = 0; t < T; ++t) kernels->matvec(w, n0, n1, row(t), y.row(t));
    return;
  }
  const int width = vnni ? int8_detail::kWidthVnni : int8_detail::kWidthAvx2;
  const PanelLoop loop{kernels, vnni ? int8_detail::tile_vnni : int8_detail::tile_avx2, width,
                       vnni ? int8_detail::kTileRowsVnni : int8_detail::kTileRowsAvx2};
  loop.run(w, n0, n1, x, index, T, y, ctx.scratch(thread, Panel::floats(w.n_cols, width)));
}

}  // namespace forebay
