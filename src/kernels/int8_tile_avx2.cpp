// A panel of eight weight rows against up to four x rows: the sums of a unit stay in registers, a lane for
// each weight row, so that nothing is added across lanes.
#include <immintrin.h>

#include "kernels/int8_dot.h"

namespace forebay::int8_detail {
namespace {

__m256i broadcast_quad(const int8_t* q) {
  return _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(q));
}

template <int kRows, bool kSigned, bool kHalves, bool kMinima>
void tile(const TileArgs& args, const Int8Row* x, float* const* y) {
  constexpr int kQuads = kHalves ? 4 : 8;
  const Panel& panel = *args.panel;
  const __m256i ones = _mm256_set1_epi16(1);
  const bool has_offset = args.form.offset_bits >= 0;
  const __m128i offset_bits = _mm_cvtsi32_si128(args.form.offset_bits);
  const int64_t n_units = args.K / (4 * kQuads);
  const uint8_t* codes = panel.codes;
  __m256 acc[kRows];
  for (int t = 0; t < kRows; ++t) acc[t] = _mm256_setzero_ps();
  for (int64_t unit = 0; unit < n_units; ++unit) {
    __m256i sum[kRows];
    for (int t = 0; t < kRows; ++t) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad, codes += 32) {
      const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes));
      const __m256i magnitude = kSigned ? _mm256_abs_epi8(w) : w;
#pragma GCC unroll 4
      for (int t = 0; t < kRows; ++t) {
        __m256i q = broadcast_quad(x[t].q + 4 * (unit * kQuads + quad));
        if constexpr (kSigned) q = _mm256_sign_epi8(q, w);
        sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, q), ones));
      }
    }
    const __m256 scale = _mm256_load_ps(panel.scales + 8 * unit);
    for (int t = 0; t < kRows; ++t) {
      if (!kSigned && !kMinima && has_offset) {
        const int32_t q_sum = kHalves ? x[t].half_sum[unit] : x[t].sum[unit];
        sum[t] = _mm256_sub_epi32(sum[t], _mm256_sll_epi32(_mm256_set1_epi32(q_sum), offset_bits));
      }
      const __m256 x_scale = _mm256_set1_ps(x[t].scale[kHalves ? unit / 2 : unit]);
      acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[t]), _mm256_mul_ps(scale, x_scale), acc[t]);
      if constexpr (kMinima) {
        const float value_sum = kHalves ? x[t].half_value_sum[unit] : x[t].value_sum[unit];
        acc[t] = _mm256_fmadd_ps(_mm256_load_ps(panel.minima + 8 * unit), _mm256_set1_ps(value_sum), acc[t]);
      }
    }
  }
  for (int t = 0; t < kRows; ++t) _mm256_storeu_ps(y[t], acc[t]);
}

template <bool kSigned, bool kHalves, bool kMinima>
void tile_of_rows(const TileArgs& args, const Int8Row* x, int n_rows, float* const* y) {
  switch (n_rows) {
    case 1:
      return tile<1, kSigned, kHalves, kMinima>(args, x, y);
    case 2:
      return tile<2, kSigned, kHalves, kMinima>(args, x, y);
    case 3:
      return tile<3, kSigned, kHalves, kMinima>(args, x, y);
    default:
      return tile<4, kSigned, kHalves, kMinima>(args, x, y);
  }
}

}  // namespace

void tile_avx2(const TileArgs& args, const Int8Row* x, int n_rows, float* const* y) {
  const PanelForm& form = args.form;
  if (form.is_signed) return tile_of_rows<true, false, false>(args, x, n_rows, y);
  if (form.has_minima)
    return form.halves ? tile_of_rows<false, true, true>(args, x, n_rows, y)
                       : tile_of_rows<false, false, true>(args, x, n_rows, y);
  return form.halves ? tile_of_rows<false, true, false>(args, x, n_rows, y)
                     : tile_of_rows<false, false, false>(args, x, n_rows, y);
}

}  // namespace forebay::int8_detail
