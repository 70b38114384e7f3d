// Columns of the state do not meet: each is decayed, read against k, corrected and read against q by itself.
// So a strip of 32 columns, with its sums in registers, goes through all tokens of a call. For several tokens
// it is copied out first: rows half a page apart share too few places of the first-level cache to stay there.
// The decay of the next token and the reading against its k are done while a row is in a register for this
// token; the sum over rows is in order for every column.
#include <algorithm>

#include "kernels/gated_delta.h"
#include "kernels/simd_avx2.h"

namespace forebay::gated_delta_detail {
namespace {

template <int kVectors>
class Strip {
 public:
  /// `rows` is where the strip's first row begins; others follow `stride` floats apart.
  Strip(const Tokens& tokens, int k_dim, int first, int n_columns, float* rows, int64_t stride)
      : tokens_(tokens), k_dim_(k_dim), first_(first), n_(n_columns), rows_(rows), stride_(stride) {}

  void run() {
    recall();
    for (int64_t t = 0; t < tokens_.n; ++t) {
      const __m256 beta = _mm256_set1_ps(tokens_.beta(t));
      for (int c = 0; c < kVectors; ++c) {
        const __m256 error = _mm256_sub_ps(load(tokens_.v(t) + first_, c), recalled_[c]);
        delta_[c] = _mm256_mul_ps(beta, error);
      }
      if (t + 1 < tokens_.n)
        correct<true>(t);
      else
        correct<false>(t);
    }
  }

 private:
  __m256 load(const float* row, int c) const { return simd::load(row + 8 * c, n_ - 8 * c); }
  void store(float* row, int c, __m256 v) const { simd::store(row + 8 * c, n_ - 8 * c, v); }
  float* row(int i) const { return rows_ + i * stride_; }

  /// state <- decay state; recalled = state^T k, of the first token.
  void recall() {
    const __m256 decay = _mm256_set1_ps(tokens_.decay(0));
    const float* k = tokens_.k(0);
    __m256 sum[kVectors];
    for (__m256& x : sum) x = _mm256_setzero_ps();
    for (int i = 0; i < k_dim_; ++i) {
      const __m256 ki = _mm256_set1_ps(k[i]);
      for (int c = 0; c < kVectors; ++c) {
        const __m256 s = _mm256_mul_ps(load(row(i), c), decay);
        store(row(i), c, s);
        sum[c] = _mm256_fmadd_ps(s, ki, sum[c]);
      }
    }
    std::copy(sum, sum + kVectors, recalled_);
  }

  /// state <- state + k delta^T; out = state^T q; and the next token's decay and recall.
  template <bool kNext>
  void correct(int64_t t) {
    const float *k = tokens_.k(t), *q = tokens_.q(t);
    const float* next_k = kNext ? tokens_.k(t + 1) : k;
    const __m256 decay = _mm256_set1_ps(kNext ? tokens_.decay(t + 1) : 1.0f);
    __m256 out[kVectors], sum[kVectors], delta[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      out[c] = sum[c] = _mm256_setzero_ps();
      delta[c] = delta_[c];
    }
    for (int i = 0; i < k_dim_; ++i) {
      const __m256 ki = _mm256_set1_ps(k[i]), qi = _mm256_set1_ps(q[i]), next = _mm256_set1_ps(next_k[i]);
      for (int c = 0; c < kVectors; ++c) {
        __m256 s = _mm256_fmadd_ps(ki, delta[c], load(row(i), c));
        out[c] = _mm256_fmadd_ps(s, qi, out[c]);
        if constexpr (kNext) {
          s = _mm256_mul_ps(s, decay);
          sum[c] = _mm256_fmadd_ps(s, next, sum[c]);
        }
        store(row(i), c, s);
      }
    }
    for (int c = 0; c < kVectors; ++c) store(tokens_.out(t) + first_, c, out[c]);
    std::copy(sum, sum + kVectors, recalled_);
  }

  const Tokens& tokens_;
  const int k_dim_, first_, n_;
  float* const rows_;
  const int64_t stride_;
  __m256 recalled_[kVectors], delta_[kVectors];
};

}  // namespace

void columns_avx2(const Tokens& tokens, int k_dim, int v_dim, int first, int end, float* state,
                  float* scratch) {
  constexpr int kColumns = 32;
  for (; first + kColumns <= end; first += kColumns) {
    if (tokens.n == 1) {
      Strip<4>(tokens, k_dim, first, kColumns, state + first, v_dim).run();
      continue;
    }
    const auto row = [&](int i) { return state + static_cast<int64_t>(i) * v_dim + first; };
    for (int i = 0; i < k_dim; ++i) std::copy_n(row(i), kColumns, scratch + i * kColumns);
    Strip<4>(tokens, k_dim, first, kColumns, scratch, kColumns).run();
    for (int i = 0; i < k_dim; ++i) std::copy_n(scratch + i * kColumns, kColumns, row(i));
  }
  for (; first < end; first += 8)
    Strip<1>(tokens, k_dim, first, std::min(8, end - first), state + first, v_dim).run();
}

}  // namespace forebay::gated_delta_detail
