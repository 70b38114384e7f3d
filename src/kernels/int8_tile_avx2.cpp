// A panel of eight weight rows against up to four x rows at a time: the sums of a unit stay in registers, a
// lane for each weight row, so that nothing is added across lanes.
#include <cstring>

#include "kernels/byte_dot.h"
#include "kernels/int8_dot.h"
#include "kernels/transpose_avx2.h"

namespace forebay::int8_detail {
namespace {

// Whether codes with signs can be multiplied as they are.
#if defined(__aarch64__)
constexpr bool kTakesSigned = true;
#else
constexpr bool kTakesSigned = false;
#endif

__m256i broadcast_quad(const float* p) {
  return _mm256_castps_si256(_mm256_broadcast_ss(p));
}

template <int kRows, bool kSigned, bool kHalves, bool kMinima>
void tile_of(const Panel& panel, PanelForm form, int64_t K, const float* tile, float* const* y, Ahead ahead) {
  constexpr int kQuads = kHalves ? 4 : 8;
  const bool has_offset = form.offset_bits >= 0;
  const __m128i offset_bits = _mm_cvtsi32_si128(form.offset_bits);
  const uint8_t* codes = panel.codes;
  const float *scales = panel.scales, *minima = panel.minima;
  __m256 acc[kRows];
  for (int t = 0; t < kRows; ++t) acc[t] = _mm256_setzero_ps();
  for (int64_t k = 0; k < K; k += 4 * kQuads) {
    __m256i sum[kRows];
    for (int t = 0; t < kRows; ++t) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + 32 * quad));
      const __m256i magnitude = kSigned && !kTakesSigned ? _mm256_abs_epi8(w) : w;
#pragma GCC unroll 4
      for (int t = 0; t < kRows; ++t) {
        __m256i q = broadcast_quad(tile + Tile::kRows * quad + t);
        if constexpr (kSigned && !kTakesSigned) q = _mm256_sign_epi8(q, w);
        sum[t] = dot_add(sum[t], magnitude, q);
      }
    }
    codes += 32 * kQuads;
    tile += Tile::kRows * kQuads;
    const std::byte* fetched = ahead.at;
    ahead.at += ahead.bytes_per_unit;
    for (; fetched < ahead.at; fetched += 64)
      _mm_prefetch(reinterpret_cast<const char*>(fetched), _MM_HINT_T1);
    const __m256 scale = _mm256_load_ps(scales);
#pragma GCC unroll 4
    for (int t = 0; t < kRows; ++t) {
      if (!kSigned && !kMinima && has_offset)
        sum[t] =
            _mm256_sub_epi32(sum[t], _mm256_sll_epi32(broadcast_quad(tile + Tile::kRows + t), offset_bits));
      acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[t]),
                               _mm256_mul_ps(scale, _mm256_broadcast_ss(tile + t)), acc[t]);
      if constexpr (kMinima)
        acc[t] =
            _mm256_fmadd_ps(_mm256_load_ps(minima), _mm256_broadcast_ss(tile + 2 * Tile::kRows + t), acc[t]);
    }
    tile += 3 * Tile::kRows;
    scales += 8;
    minima += 8;
  }
  for (int t = 0; t < kRows; ++t) _mm256_storeu_ps(y[t], acc[t]);
}

template <bool kSigned, bool kHalves, bool kMinima>
void tile_of_rows(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows,
                  float* const* y, Ahead ahead) {
  for (; n_rows > 0; n_rows -= 4, tile += 4, y += 4, ahead = {}) switch (n_rows) {
      case 1:
        tile_of<1, kSigned, kHalves, kMinima>(panel, form, K, tile, y, ahead);
        break;
      case 2:
        tile_of<2, kSigned, kHalves, kMinima>(panel, form, K, tile, y, ahead);
        break;
      case 3:
        tile_of<3, kSigned, kHalves, kMinima>(panel, form, K, tile, y, ahead);
        break;
      default:
        tile_of<4, kSigned, kHalves, kMinima>(panel, form, K, tile, y, ahead);
    }
}

}  // namespace

void pack_tile(const Int8Row (&x)[Tile::kRows], int64_t K, bool halves, float* tile) {
  const int quads = halves ? 4 : 8;
  const auto put = [&](auto field) {
    for (int t = 0; t < Tile::kRows; ++t) {
      const auto value = field(x[t]);
      std::memcpy(tile + t, &value, sizeof value);
    }
    tile += Tile::kRows;
  };
  alignas(32) float quads_of_run[8 * Tile::kRows];
  for (int64_t j = 0; j < K / 32; ++j) {
    __m256i q[Tile::kRows];
    for (int t = 0; t < Tile::kRows; ++t)
      q[t] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x[t].q + 32 * j));
    store_transposed(q, reinterpret_cast<uint8_t*>(quads_of_run), 4 * Tile::kRows);
    for (int h = 0; h < 8 / quads; ++h) {
      std::memcpy(tile, quads_of_run + h * quads * Tile::kRows,
                  sizeof(float) * static_cast<size_t>(quads * Tile::kRows));
      tile += quads * Tile::kRows;
      const int64_t unit = halves ? 2 * j + h : j;
      put([&](const Int8Row& r) { return r.scale[j]; });
      put([&](const Int8Row& r) { return halves ? r.half_sum[unit] : r.sum[unit]; });
      put([&](const Int8Row& r) { return halves ? r.half_value_sum[unit] : r.value_sum[unit]; });
    }
  }
}

void tile_avx2(const Panel& panel, PanelForm form, int64_t K, const float* tile, int n_rows, float* const* y,
               Ahead ahead) {
  if (form.is_signed) return tile_of_rows<true, false, false>(panel, form, K, tile, n_rows, y, ahead);
  if (form.has_minima)
    return form.halves ? tile_of_rows<false, true, true>(panel, form, K, tile, n_rows, y, ahead)
                       : tile_of_rows<false, false, true>(panel, form, K, tile, n_rows, y, ahead);
  return form.halves ? tile_of_rows<false, true, false>(panel, form, K, tile, n_rows, y, ahead)
                     : tile_of_rows<false, false, false>(panel, form, K, tile, n_rows, y, ahead);
}

}  // namespace forebay::int8_detail
