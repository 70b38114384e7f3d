// A panel of sixteen weight rows against up to eight x rows, with AVX-512 VNNI: one instruction for 64
// products.
#include <immintrin.h>

#include "kernels/int8_dot.h"

namespace forebay::int8_detail {
namespace {

template <int kRows, bool kHalves, bool kMinima>
void tile(const TileArgs& args, const Int8Row* x, float* const* y) {
  constexpr int kQuads = kHalves ? 4 : 8;
  const Panel& panel = *args.panel;
  const bool has_offset = args.form.offset_bits >= 0;
  const __m128i offset_bits = _mm_cvtsi32_si128(args.form.offset_bits);
  const int64_t n_units = args.K / (4 * kQuads);
  const uint8_t* codes = panel.codes;
  __m512 acc[kRows];
  for (int t = 0; t < kRows; ++t) acc[t] = _mm512_setzero_ps();
  for (int64_t unit = 0; unit < n_units; ++unit) {
    __m512i sum[kRows];
    for (int t = 0; t < kRows; ++t) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad, codes += 64) {
      const __m512i w = _mm512_load_si512(codes);
#pragma GCC unroll 8
      for (int t = 0; t < kRows; ++t) {
        const auto* q = reinterpret_cast<const int32_t*>(x[t].q) + unit * kQuads + quad;
        sum[t] = _mm512_dpbusd_epi32(sum[t], w, _mm512_set1_epi32(*q));
      }
    }
    const __m512 scale = _mm512_load_ps(panel.scales + 16 * unit);
#pragma GCC unroll 8
    for (int t = 0; t < kRows; ++t) {
      if (!kMinima && has_offset) {
        const int32_t q_sum = kHalves ? x[t].half_sum[unit] : x[t].sum[unit];
        sum[t] = _mm512_sub_epi32(sum[t], _mm512_sll_epi32(_mm512_set1_epi32(q_sum), offset_bits));
      }
      const __m512 x_scale = _mm512_set1_ps(x[t].scale[kHalves ? unit / 2 : unit]);
      acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]), _mm512_mul_ps(scale, x_scale), acc[t]);
      if constexpr (kMinima) {
        const float value_sum = kHalves ? x[t].half_value_sum[unit] : x[t].value_sum[unit];
        acc[t] = _mm512_fmadd_ps(_mm512_load_ps(panel.minima + 16 * unit), _mm512_set1_ps(value_sum), acc[t]);
      }
    }
  }
  for (int t = 0; t < kRows; ++t) _mm512_storeu_ps(y[t], acc[t]);
}

template <bool kHalves, bool kMinima>
void tile_of_rows(const TileArgs& args, const Int8Row* x, int n_rows, float* const* y) {
  switch (n_rows) {
    case 1:
      return tile<1, kHalves, kMinima>(args, x, y);
    case 2:
      return tile<2, kHalves, kMinima>(args, x, y);
    case 3:
      return tile<3, kHalves, kMinima>(args, x, y);
    case 4:
      return tile<4, kHalves, kMinima>(args, x, y);
    case 5:
      return tile<5, kHalves, kMinima>(args, x, y);
    case 6:
      return tile<6, kHalves, kMinima>(args, x, y);
    case 7:
      return tile<7, kHalves, kMinima>(args, x, y);
    default:
      return tile<8, kHalves, kMinima>(args, x, y);
  }
}

}  // namespace

void tile_vnni(const TileArgs& args, const Int8Row* x, int n_rows, float* const* y) {
  const PanelForm& form = args.form;
  if (form.has_minima)
    return form.halves ? tile_of_rows<true, true>(args, x, n_rows, y)
                       : tile_of_rows<false, true>(args, x, n_rows, y);
  return form.halves ? tile_of_rows<true, false>(args, x, n_rows, y)
                     : tile_of_rows<false, false>(args, x, n_rows, y);
}

}  // namespace forebay::int8_detail
