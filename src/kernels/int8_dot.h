/// Private to this folder: integer dot products of block formats with rounded activations.
///
/// y[t,n] is one f32 accumulator, from 0, over the runs of row n in order:
///   acc = fma(S, scale * x.scale[j], acc)            S the exact integer sum of code * q over run j;
///                                                    with halves, the two halves one after the other
///   acc = fma(minimum, x.value_sum[j], acc)          where the format has minima; half_value_sum with halves
/// So its bits depend on its weight row and its x row alone, and every version here gives the same.
#pragma once

#include <cstdint>

#include "kernels/int8_rows.h"
#include "tensor/view.h"

namespace forebay::int8_detail {

/// The definition, weight by weight.
float dot_ref(const MatrixView& w, int64_t n, const Int8Row& x);

/// y[n] for n in [n0, n1), one x row.
using MatvecFn = void (*)(const MatrixView& w, int64_t n0, int64_t n1, const Int8Row& x, float* y);

/// Weight rows unpacked for many x rows: `width` of them side by side.
struct Panel {
  int width = 8;
  uint8_t* codes;  // [K/4][width][4], each `offset` above the code; or the signed code itself
  float* scales;   // [units][width]; a unit is a run, or a half
  float* minima;   // [units][width], where the format has them

  /// Floats of scratch for a panel of any format.
  static int64_t floats(int64_t K, int width) { return K * width / 4 + 2 * (K / 16 * width); }
  Panel(float* scratch, int64_t K, int width)
      : width(width),
        codes(reinterpret_cast<uint8_t*>(scratch)),
        scales(scratch + K * width / 4),
        minima(scales + K / 16 * width) {}
};

/// How a panel's codes are to be read.
struct PanelForm {
  bool halves = false;
  bool has_minima = false;
  bool is_signed = false;  // two's complement codes, any value
  int offset_bits = -1;    // codes are 1 << offset_bits above the true ones; -1: no offset
};

/// Rows [n, n + width) of w, the last row again where those end at n_end.
using UnpackFn = void (*)(const MatrixView& w, int64_t n, int64_t n_end, const Panel& panel);

/// Up to kTileRows x rows side by side, all that a unit needs behind one another:
///   [quads of the unit][8] four values of q, [8] scale, [8] sum of q, [8] value sum
/// One pointer walks through it while a panel's sums are in registers.
struct Tile {
  static constexpr int kRows = 8;

  /// Floats of scratch for a tile of either form.
  static int64_t floats(int64_t K) { return K / 16 * (4 + 3) * kRows; }
};
/// Any rows may fill the places that are not needed.
void pack_tile(const Int8Row (&x)[Tile::kRows], int64_t K, bool halves, float* tile);

/// What a panel's product fetches meanwhile for the next one: memory would be idle otherwise.
struct Ahead {
  const std::byte* at = nullptr;
  int64_t bytes_per_unit = 0;  // 0: nothing
};

/// y[t][0..width) for the first n_rows rows of a tile.
using TileFn = void (*)(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows,
                        float* const* y, Ahead ahead);

struct Int8Kernels {
  MatvecFn matvec;
  UnpackFn unpack;
  PanelForm form;
  int panel_rows;  // from this many x rows on, unpacking a panel once is cheaper than matvec for each
};

/// Null where the type has none. Call what the first holds only where best_isa() is not kReference. The
/// second has any only where has_vnni().
const Int8Kernels* find_kernels_avx2(DType type);
const Int8Kernels* find_kernels_vnni(DType type);

inline constexpr int kWidthAvx2 = 8, kWidthVnni = 16;
void tile_avx2(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows, float* const* y,
               Ahead ahead);
void tile_vnni(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows, float* const* y,
               Ahead ahead);

}  // namespace forebay::int8_detail
