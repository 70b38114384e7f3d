#include <algorithm>

#include "kernels/block_select.h"
#include "kernels/simd_avx2.h"
#include "kernels/transpose_avx2.h"

namespace forebay::block_select_detail {
namespace {

constexpr int64_t kAhead = 4096;   // bytes
constexpr int64_t kIdsAhead = 16;  // keys

/// Lane i: the sum over acc[i].
FOREBAY_INLINE __m256 sums_of(const __m256* acc) {
  const auto fold = [&](int i) {
    return _mm256_add_ps(_mm256_permute2f128_ps(acc[i], acc[i + 4], 0x20),
                         _mm256_permute2f128_ps(acc[i], acc[i + 4], 0x31));
  };
  return _mm256_hadd_ps(_mm256_hadd_ps(fold(0), fold(1)), _mm256_hadd_ps(fold(2), fold(3)));
}

/// Dot products of four heads (missing ones repeat the last) with keys a and b, lane 4 * key + head.
FOREBAY_INLINE __m256 dots(const float* const* q, int dim, const float* a, const float* b) {
  __m256 acc[8];
  for (__m256& x : acc) x = _mm256_setzero_ps();
  const auto add = [&](__m256 va, __m256 vb, auto load_q) {
    for (int j = 0; j < 4; ++j) {
      const __m256 vq = load_q(q[j]);
      acc[j] = _mm256_fmadd_ps(vq, va, acc[j]);
      acc[j + 4] = _mm256_fmadd_ps(vq, vb, acc[j + 4]);
    }
  };
  int d = 0;
  for (; d + 8 <= dim; d += 8)
    add(_mm256_loadu_ps(a + d), _mm256_loadu_ps(b + d),
        [&](const float* row) { return _mm256_loadu_ps(row + d); });
  if (d < dim)
    add(simd::load(a + d, dim - d), simd::load(b + d, dim - d),
        [&](const float* row) { return simd::load(row + d, dim - d); });
  return sums_of(acc);
}

/// Lane 4 * key + head: dots that are above zero, of heads [j, j + 4); a NaN stays.
FOREBAY_INLINE __m256 agreement(const float* q, int n_heads, int j, int dim, const float* a, const float* b) {
  const float* head[4];
  for (int i = 0; i < 4; ++i) head[i] = q + std::min(j + i, n_heads - 1) * dim;
  const __m256 relu = _mm256_max_ps(_mm256_setzero_ps(), dots(head, dim, a, b));
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
  const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(n_heads - j), lane);
  return _mm256_and_ps(relu, _mm256_castsi256_ps(there));
}

}  // namespace

/// Four heads of a key as (0 + 1) + (2 + 3), then the next four.
void score_avx2(const float* q, int n_heads, int dim, const float* keys, const uint32_t* ids, int64_t n_keys,
                float* score) {
  const int64_t bytes = int64_t{4} * dim;
  const auto prefetch = [](const void* from, int64_t n) {
    for (int64_t byte = 0; byte < n; byte += 64)
      _mm_prefetch(static_cast<const char*>(from) + byte, _MM_HINT_T0);
  };
  const auto key_at = [&](int64_t b) {
    return keys + (ids == nullptr ? b : static_cast<int64_t>(ids[b])) * dim;
  };
  for (int64_t b = 0; b < n_keys; b += 4) {
    const float* key[4];
    for (int i = 0; i < 4; ++i) key[i] = key_at(std::min(b + i, n_keys - 1));
    // Keys come from far away and are read once: the next ones are asked for while these are scored.
    if (ids == nullptr)
      prefetch(reinterpret_cast<const char*>(key[0]) + kAhead, 4 * bytes);
    else
      for (int64_t i = b + kIdsAhead; i < std::min(b + kIdsAhead + 4, n_keys); ++i)
        prefetch(key_at(i), bytes);
    __m256 sum = _mm256_setzero_ps();  // keys 0 2 0 2 | 1 3 1 3
    for (int j = 0; j < n_heads; j += 4) {
      const __m256 pairs = _mm256_hadd_ps(agreement(q, n_heads, j, dim, key[0], key[1]),
                                          agreement(q, n_heads, j, dim, key[2], key[3]));
      sum = _mm256_add_ps(sum, _mm256_hadd_ps(pairs, pairs));
    }
    const __m128 four = _mm_unpacklo_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    alignas(16) float to[4];
    _mm_store_ps(to, four);
    std::copy_n(to, std::min<int64_t>(4, n_keys - b), score + b);
  }
}

void keys_avx2(const float* score, size_t n, uint32_t* keys) {
  const __m256i sign = _mm256_set1_epi32(INT32_MIN), largest = _mm256_set1_epi32(0x7f800000);
  const __m256i all = _mm256_set1_epi32(-1);
  for (size_t i = 0; i < n; i += 8) {
    const auto left = static_cast<int64_t>(n - i);
    const __m256i bits = _mm256_castps_si256(simd::load(score + i, left));
    const __m256i flip = _mm256_or_si256(_mm256_srai_epi32(bits, 31), sign);
    const __m256i is_nan = _mm256_cmpgt_epi32(_mm256_andnot_si256(sign, bits), largest);
    const __m256i key = _mm256_blendv_epi8(_mm256_xor_si256(bits, flip), all, is_nan);
    simd::store(reinterpret_cast<float*>(keys + i), left, _mm256_castsi256_ps(key));
  }
}

size_t find_avx2(const uint32_t* keys, size_t n, uint32_t least, uint32_t most, uint32_t* found) {
  const __m256i sign = _mm256_set1_epi32(INT32_MIN);
  const __m256i low = _mm256_xor_si256(_mm256_set1_epi32(static_cast<int>(least)), sign);
  const __m256i high = _mm256_xor_si256(_mm256_set1_epi32(static_cast<int>(most)), sign);
  size_t n_found = 0;
  for (size_t i = 0; i < n; i += 8) {
    const auto left = static_cast<int64_t>(n - i);
    const __m256 loaded = simd::load(reinterpret_cast<const float*>(keys + i), left);
    const __m256i key = _mm256_xor_si256(_mm256_castps_si256(loaded), sign);
    const __m256i out = _mm256_or_si256(_mm256_cmpgt_epi32(low, key), _mm256_cmpgt_epi32(key, high));
    auto in = static_cast<unsigned>(~_mm256_movemask_ps(_mm256_castsi256_ps(out))) & 0xffu;
    if (left < 8) in &= (1u << left) - 1;
    for (; in != 0; in &= in - 1)
      found[n_found++] = static_cast<uint32_t>(i) + static_cast<uint32_t>(__builtin_ctz(in));
  }
  return n_found;
}

size_t find_at_least_avx2(const float* x, size_t n, float least, uint32_t* found) {
  const __m256 bound = _mm256_set1_ps(least);
  size_t n_found = 0;
  for (size_t i = 0; i < n; i += 8) {
    const auto left = static_cast<int64_t>(n - i);
    auto in =
        static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(simd::load(x + i, left), bound, _CMP_GE_OQ)));
    if (left < 8) in &= (1u << left) - 1;
    for (; in != 0; in &= in - 1)
      found[n_found++] = static_cast<uint32_t>(i) + static_cast<uint32_t>(__builtin_ctz(in));
  }
  return n_found;
}

}  // namespace forebay::block_select_detail
