// A panel of sixteen weight rows against up to eight x rows, with AVX-512 VNNI: one instruction for 64
// products.
#include <immintrin.h>

#include "kernels/int8_dot.h"

namespace forebay::int8_detail {
namespace {

template <int kRows, bool kHalves, bool kMinima>
void tile_of(const Panel& panel, PanelForm form, int64_t K, const float* tile, float* const* y, Ahead ahead) {
  constexpr int kQuads = kHalves ? 4 : 8;
  const bool has_offset = form.offset_bits >= 0;
  const __m128i offset_bits = _mm_cvtsi32_si128(form.offset_bits);
  const uint8_t* codes = panel.codes;
  const float *scales = panel.scales, *minima = panel.minima;
  const auto broadcast = [](const float* p) { return _mm512_castps_si512(_mm512_set1_ps(*p)); };
  __m512 acc[kRows];
  for (int t = 0; t < kRows; ++t) acc[t] = _mm512_setzero_ps();
  for (int64_t k = 0; k < K; k += 4 * kQuads) {
    __m512i sum[kRows];
    for (int t = 0; t < kRows; ++t) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      const __m512i w = _mm512_load_si512(codes + 64 * quad);
#pragma GCC unroll 8
      for (int t = 0; t < kRows; ++t)
        sum[t] = _mm512_dpbusd_epi32(sum[t], w, broadcast(tile + Tile::kRows * quad + t));
    }
    codes += 64 * kQuads;
    tile += Tile::kRows * kQuads;
    const std::byte* fetched = ahead.at;
    ahead.at += ahead.bytes_per_unit;
    for (; fetched < ahead.at; fetched += 64)
      _mm_prefetch(reinterpret_cast<const char*>(fetched), _MM_HINT_T1);
    const __m512 scale = _mm512_load_ps(scales);
#pragma GCC unroll 8
    for (int t = 0; t < kRows; ++t) {
      if (!kMinima && has_offset)
        sum[t] = _mm512_sub_epi32(sum[t], _mm512_sll_epi32(broadcast(tile + Tile::kRows + t), offset_bits));
      acc[t] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]), _mm512_mul_ps(scale, _mm512_set1_ps(tile[t])), acc[t]);
      if constexpr (kMinima)
        acc[t] = _mm512_fmadd_ps(_mm512_load_ps(minima), _mm512_set1_ps(tile[2 * Tile::kRows + t]), acc[t]);
    }
    tile += 3 * Tile::kRows;
    scales += 16;
    minima += 16;
  }
  for (int t = 0; t < kRows; ++t) _mm512_storeu_ps(y[t], acc[t]);
}

template <bool kHalves, bool kMinima>
void tile_of_rows(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows,
                  float* const* y, Ahead ahead) {
  switch (n_rows) {
    case 1:
      return tile_of<1, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    case 2:
      return tile_of<2, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    case 3:
      return tile_of<3, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    case 4:
      return tile_of<4, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    case 5:
      return tile_of<5, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    case 6:
      return tile_of<6, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    case 7:
      return tile_of<7, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    default:
      return tile_of<8, kHalves, kMinima>(panel, form, K, tile, y, ahead);
  }
}

}  // namespace

void tile_vnni(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows, float* const* y,
               Ahead ahead) {
  if (form.has_minima)
    return form.halves ? tile_of_rows<true, true>(panel, form, K, tile, n_rows, y, ahead)
                       : tile_of_rows<false, true>(panel, form, K, tile, n_rows, y, ahead);
  return form.halves ? tile_of_rows<true, false>(panel, form, K, tile, n_rows, y, ahead)
                     : tile_of_rows<false, false>(panel, form, K, tile, n_rows, y, ahead);
}

}  // namespace forebay::int8_detail
