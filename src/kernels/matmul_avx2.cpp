// Decodes eight weight rows to f32, then multiplies them with every x row in register tiles. Each output has
// one accumulator vector filled in k order, whatever the tile: that is what makes bits independent of T.
#include <algorithm>

#include "kernels/decode_row.h"
#include "kernels/matmul.h"
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

}  // namespace

void task_avx2(const MatrixView& w, int64_t n0, int64_t n1, RowSet<const float> x, int64_t T, RowSet<float> y,
               float* scratch) {
  const int64_t K = w.n_cols;
  const DecodeFn decode = find_decoder(w.type, Isa::kAvx2);
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
