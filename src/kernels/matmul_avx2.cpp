// Decodes eight weight rows to f32, then multiplies them with every x row in register tiles. Each output has
// one accumulator vector filled in k order, whatever the tile: that is what makes bits independent of T.
// One x row of a plain type is multiplied as it is loaded, in the same order.
#include <algorithm>
#include <cstring>

#include "kernels/decode_row.h"
#include "kernels/matmul.h"
#include "kernels/rows_avx2.h"
#include "kernels/simd_avx2.h"

namespace forebay::matmul_detail {
namespace {

template <int kRows, int kTokens>
void tile(const float* const* w, const RowSet<const float>& x, const RowSet<float>& y, int64_t t0, int64_t n,
          int64_t K) {
  const float* x_K[kTokens];
  for (int t = 0; t < kTokens; ++t) x_K[t] = x.row(t0 + t);
  __m256 acc[kRows][kTokens];
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTokens; ++t) acc[r][t] = _mm256_setzero_ps();
  int64_t k = 0;
  for (; k + 8 <= K; k += 8) {
    __m256 vx[kTokens];
    for (int t = 0; t < kTokens; ++t) vx[t] = _mm256_loadu_ps(x_K[t] + k);
    for (int r = 0; r < kRows; ++r) {
      const __m256 vw = _mm256_loadu_ps(w[r] + k);
      for (int t = 0; t < kTokens; ++t) acc[r][t] = _mm256_fmadd_ps(vw, vx[t], acc[r][t]);
    }
  }
  if (k < K) {
    for (int r = 0; r < kRows; ++r) {
      const __m256 vw = simd::load(w[r] + k, K - k);
      for (int t = 0; t < kTokens; ++t)
        acc[r][t] = _mm256_fmadd_ps(vw, simd::load(x_K[t] + k, K - k), acc[r][t]);
    }
  }
  for (int t = 0; t < kTokens; ++t)
    for (int r = 0; r < kRows; ++r) y.row(t0 + t)[n + r] = simd::sum(acc[r][t]);
}

/// All T rows against kRows weight rows.
template <int kRows>
void strip(const float* const* w, const RowSet<const float>& x, const RowSet<float>& y, int64_t T, int64_t n,
           int64_t K) {
  int64_t t = 0;
  for (; t + 3 <= T; t += 3) tile<kRows, 3>(w, x, y, t, n, K);
  if (T - t == 2) tile<kRows, 2>(w, x, y, t, n, K);
  if (T - t == 1) tile<kRows, 1>(w, x, y, t, n, K);
}

/// Eight weights at k, the first n of them where fewer are left.
struct LoadF32 {
  static constexpr int kBytes = 4;
  static __m256 load(const uint8_t* row, int64_t k) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(row) + k);
  }
};
struct LoadF16 {
  static constexpr int kBytes = 2;
  static __m256 load(const uint8_t* row, int64_t k) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * k)));
  }
};
struct LoadBF16 {
  static constexpr int kBytes = 2;
  static __m256 load(const uint8_t* row, int64_t k) {
    const __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * k)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
  }
};

/// One x row.
template <typename Load>
void matvec(const MatrixView& w, int64_t n0, int64_t n1, const float* x, float* y, DecodeFn decode) {
  const int64_t K = w.n_cols, whole = K / 8 * 8;
  for (int64_t n = n0; n < n1; n += kRowsAtOnce) {
    const RowPointers rows(w, n, n1);
    Prefetcher prefetcher(w, n);
    __m256 acc[kRowsAtOnce];
    for (int r = 0; r < kRowsAtOnce; ++r) acc[r] = _mm256_setzero_ps();
    for (int64_t k = 0; k < whole; k += 8) {
      prefetcher.advance(8 * Load::kBytes * kRowsAtOnce);
      const __m256 vx = _mm256_loadu_ps(x + k);
#pragma GCC unroll 8
      for (int r = 0; r < kRowsAtOnce; ++r) acc[r] = _mm256_fmadd_ps(Load::load(rows.row[r], k), vx, acc[r]);
    }
    if (whole < K) {
      const __m256 vx = simd::load(x + whole, K - whole);
      for (int r = 0; r < kRowsAtOnce; ++r) {
        alignas(32) float rest[8] = {};
        const uint8_t* from = rows.row[r] + whole * Load::kBytes;
        if (decode != nullptr)
          decode(reinterpret_cast<const std::byte*>(from), K - whole, rest);
        else
          std::memcpy(rest, from, static_cast<size_t>(K - whole) * sizeof(float));
        acc[r] = _mm256_fmadd_ps(_mm256_load_ps(rest), vx, acc[r]);
      }
    }
    for (int r = 0; r < kRowsAtOnce && n + r < n1; ++r) y[n + r] = simd::sum(acc[r]);
  }
}

}  // namespace

void task_avx2(const MatrixView& w, int64_t n0, int64_t n1, RowSet<const float> x, int64_t T, RowSet<float> y,
               float* scratch) {
  const int64_t K = w.n_cols;
  if (T == 1 && w.type == DType::kF32) return matvec<LoadF32>(w, n0, n1, x.row(0), y.row(0), nullptr);
  const DecodeFn decode = find_decoder(w.type, best_isa());
  if (T == 1 && w.type == DType::kF16) return matvec<LoadF16>(w, n0, n1, x.row(0), y.row(0), decode);
  if (T == 1 && w.type == DType::kBF16) return matvec<LoadBF16>(w, n0, n1, x.row(0), y.row(0), decode);
  for (int64_t n = n0; n < n1; n += kRowsPerTile) {
    const int64_t rows = std::min(kRowsPerTile, n1 - n);
    const float* decoded[kRowsPerTile];
    for (int64_t r = 0; r < rows; ++r) {
      if (w.type == DType::kF32) {
        decoded[r] = reinterpret_cast<const float*>(w.row(n + r));
      } else {
        decode(w.row(n + r), K, scratch + r * K);
        decoded[r] = scratch + r * K;
      }
    }
    int64_t r = 0;
    // Eight accumulators hide the FMA latency when there is one token; with more, twelve in 4 x 3.
    if (T == 1 && rows == kRowsPerTile) {
      tile<kRowsPerTile, 1>(decoded, x, y, 0, n, K);
      continue;
    }
    for (; r + 4 <= rows; r += 4) strip<4>(decoded + r, x, y, T, n + r, K);
    for (; r < rows; ++r) strip<1>(decoded + r, x, y, T, n + r, K);
  }
}

}  // namespace forebay::matmul_detail
