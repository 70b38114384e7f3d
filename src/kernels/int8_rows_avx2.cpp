#include <limits>

#include "core/vectors.h"
#include "kernels/int8_rows.h"

namespace forebay::int8_detail {
namespace {

/// The largest lane.
int32_t largest_of(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

void round_run(const float* x, int64_t j, const Int8Row& out) {
  const __m256 v[4] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
                       _mm256_loadu_ps(x + 24)};
  // Magnitudes compare like their bits, with infinity and then NaN on top.
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i m[4];
  for (int i = 0; i < 4; ++i) m[i] = _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude);
  const int32_t bits =
      largest_of(_mm256_max_epi32(_mm256_max_epi32(m[0], m[1]), _mm256_max_epi32(m[2], m[3])));
  const float largest = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(bits)));

  auto* q = reinterpret_cast<__m256i*>(out.q + 32 * j);
  if (!(largest >= kNegligible && largest <= std::numeric_limits<float>::max())) {
    const float scale = largest < kNegligible ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    _mm256_storeu_si256(q, _mm256_setzero_si256());
    out.scale[j] = out.value_sum[j] = out.half_value_sum[2 * j] = out.half_value_sum[2 * j + 1] = scale;
    out.sum[j] = out.half_sum[2 * j] = out.half_sum[2 * j + 1] = 0;
    return;
  }
  const float scale = largest / 127.0f;
  const __m256 inverse = _mm256_set1_ps(127.0f / largest);
  __m256i n[4];
  for (int i = 0; i < 4; ++i) n[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
  // The packs work within 128-bit halves; the permutation puts the groups of four back in order.
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
  _mm256_storeu_si256(q, _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));

  const __m256i low = _mm256_add_epi32(n[0], n[1]), high = _mm256_add_epi32(n[2], n[3]);
  __m256i sums = _mm256_hadd_epi32(low, high);
  sums = _mm256_hadd_epi32(sums, sums);
  const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  const int32_t first = _mm_cvtsi128_si32(both), second = _mm_extract_epi32(both, 1);
  out.scale[j] = scale;
  out.sum[j] = first + second;
  out.half_sum[2 * j] = first;
  out.half_sum[2 * j + 1] = second;
  out.value_sum[j] = scale * static_cast<float>(first + second);
  out.half_value_sum[2 * j] = scale * static_cast<float>(first);
  out.half_value_sum[2 * j + 1] = scale * static_cast<float>(second);
}

/// A 16 x 4 byte matrix to 4 x 16.
void write_planes(const int8_t* q, int8_t* planes) {
  const __m128i by_plane = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m128i v[4];
  for (int i = 0; i < 4; ++i)
    v[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q) + i), by_plane);
  const __m128i a = _mm_unpacklo_epi32(v[0], v[1]), b = _mm_unpacklo_epi32(v[2], v[3]);
  const __m128i c = _mm_unpackhi_epi32(v[0], v[1]), d = _mm_unpackhi_epi32(v[2], v[3]);
  auto* to = reinterpret_cast<__m128i*>(planes);
  _mm_storeu_si128(to, _mm_unpacklo_epi64(a, b));
  _mm_storeu_si128(to + 1, _mm_unpackhi_epi64(a, b));
  _mm_storeu_si128(to + 2, _mm_unpacklo_epi64(c, d));
  _mm_storeu_si128(to + 3, _mm_unpackhi_epi64(c, d));
}

}  // namespace

void round_avx2(const float* x, int64_t begin, int64_t end, const Int8Row& out) {
  for (int64_t i = begin; i < end; i += 32) round_run(x + i, i / 32, out);
  for (int64_t i = begin; i + 64 <= end; i += 64) write_planes(out.q + i, out.planes + i);
}

}  // namespace forebay::int8_detail
