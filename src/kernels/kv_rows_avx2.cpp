#include <algorithm>
#include <cstring>

#include "kernels/kv_rows.h"
#include "kernels/simd_avx2.h"
#include "tensor/half.h"

namespace forebay::kv_rows_detail {
namespace {

__m128i halves_of(__m256 x) {
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

__m128i low_words(__m256i x) {
  const __m256i packed = _mm256_packus_epi32(x, x);
  return _mm_unpacklo_epi64(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
}

__m128i bf16_of(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return low_words(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan)));
}

/// The same bits as the reference: the scale through the same division, and a division per value.
void write_group(const float* x, int n, int8_t* q, uint16_t* scale) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  __m256 largest = _mm256_setzero_ps(), poison = _mm256_setzero_ps();
  for (int i = 0; i < n; i += 8) {
    const __m256 v = simd::load(x + i, n - i);
    largest = _mm256_max_ps(_mm256_and_ps(v, magnitude), largest);
    poison = _mm256_add_ps(poison, _mm256_sub_ps(v, v));
  }
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  m = _mm_max_ss(m, _mm_shuffle_ps(m, m, 1));
  const bool finite = simd::sum(poison) == 0.0f;
  *scale = finite ? f16_from_f32(_mm_cvtss_f32(m) / 127.0f) : uint16_t{0x7e00};
  const float step = f32_from_f16(*scale);
  if ((*scale & 0x7c00) == 0x7c00 || step == 0) {
    std::memset(q, 0, static_cast<size_t>(n));
    q[0] = step == 0 ? 0 : 1;
    return;
  }
  const __m256i limit = _mm256_set1_epi32(127);
  for (int i = 0; i < n; i += 8) {
    const __m256 ratio = _mm256_div_ps(simd::load(x + i, n - i), _mm256_set1_ps(step));
    __m256i r = _mm256_cvtps_epi32(ratio);
    r = _mm256_max_epi32(_mm256_min_epi32(r, limit), _mm256_set1_epi32(-127));
    const __m256i words = _mm256_packs_epi32(r, r);
    const __m256i bytes = _mm256_packs_epi16(words, words);
    const auto low = static_cast<uint32_t>(_mm256_extract_epi32(bytes, 0));
    const auto high = static_cast<uint32_t>(_mm256_extract_epi32(bytes, 4));
    const uint64_t eight = static_cast<uint64_t>(high) << 32 | low;
    std::memcpy(q + i, &eight, static_cast<size_t>(std::min(8, n - i)));
  }
}

}  // namespace

void write_head_avx2(const KvRows& rows, int64_t cell, int head, const float* x) {
  const int dim = rows.head_dim;
  const int64_t at = cell * rows.width() + static_cast<int64_t>(head) * dim;
  switch (rows.type) {
    case KvType::kF32:
      std::memcpy(rows.values + at * 4, x, static_cast<size_t>(dim) * 4);
      return;
    case KvType::kF16:
    case KvType::kBf16:
      for (int d = 0; d < dim; d += 8) {
        const __m256 v = simd::load(x + d, dim - d);
        const __m128i words = rows.type == KvType::kF16 ? halves_of(v) : bf16_of(v);
        std::memcpy(rows.values + (at + d) * 2, &words, static_cast<size_t>(std::min(8, dim - d)) * 2);
      }
      return;
    case KvType::kInt8: {
      uint16_t* scales =
          rows.scales + cell * rows.n_scales() + static_cast<int64_t>(head) * rows.groups_per_head();
      for (int d = 0, g = 0; d < dim; d += KvFormat::kGroupDims, ++g)
        write_group(x + d, std::min(KvFormat::kGroupDims, dim - d),
                    reinterpret_cast<int8_t*>(rows.values) + at + d, scales + g);
      return;
    }
  }
}

void read_head_avx2(const KvRows& rows, int64_t cell, int head, float* out) {
  const int dim = rows.head_dim;
  const std::byte* from =
      rows.values + (cell * rows.width() + static_cast<int64_t>(head) * dim) * rows.element_bytes();
  // A head that does not fill its last vector is read through a copy: nothing is read past its end.
  const auto words = [&](int d) {
    if (dim - d >= 8) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + d * 2));
    __m128i w = _mm_setzero_si128();
    std::memcpy(&w, from + d * 2, static_cast<size_t>(dim - d) * 2);
    return w;
  };
  switch (rows.type) {
    case KvType::kF32:
      std::memcpy(out, from, static_cast<size_t>(dim) * 4);
      return;
    case KvType::kF16:
      for (int d = 0; d < dim; d += 8) simd::store(out + d, dim - d, _mm256_cvtph_ps(words(d)));
      return;
    case KvType::kBf16:
      for (int d = 0; d < dim; d += 8)
        simd::store(out + d, dim - d,
                    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words(d)), 16)));
      return;
    case KvType::kInt8: {
      const uint16_t* scales =
          rows.scales + cell * rows.n_scales() + static_cast<int64_t>(head) * rows.groups_per_head();
      for (int d = 0; d < dim; d += 8) {
        __m128i eight = _mm_setzero_si128();
        if (dim - d >= 8)
          eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + d));
        else
          std::memcpy(&eight, from + d, static_cast<size_t>(dim - d));
        const __m256i q = _mm256_cvtepi8_epi32(eight);
        const __m256 scale = _mm256_set1_ps(_cvtsh_ss(scales[d / KvFormat::kGroupDims]));
        simd::store(out + d, dim - d, _mm256_mul_ps(_mm256_cvtepi32_ps(q), scale));
      }
      return;
    }
  }
}

}  // namespace forebay::kv_rows_detail
