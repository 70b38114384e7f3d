// bound_scores with vectors, four heads at a time; include only from files that are built for them.
#pragma once

#include "kernels/block_codes.h"
#include "kernels/byte_dot.h"

namespace forebay::block_codes_detail {
namespace {

constexpr int64_t kAhead = 4096;  // bytes

/// sum[half]: what four heads of one tile add to its scores, before the keys' scales.
inline void add_heads(const CodedQuery& q, int h, const std::byte* tile, __m256* sum) {
  const int64_t quads = BlockCodes::quads(q.dim);
  const int8_t* codes = q.codes.data() + h * quads * 4;
  __m256i dots[4][2];
  for (int j = 0; j < 4; ++j)
    dots[j][0] = dots[j][1] = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_set1_epi32(q.offset[h + j]));
  for (int64_t quad = 0; quad < quads; ++quad) {
    const auto* keys = reinterpret_cast<const __m256i*>(tile + 64 * quad);
    const __m256i first = _mm256_loadu_si256(keys), second = _mm256_loadu_si256(keys + 1);
    for (int j = 0; j < 4; ++j) {
      int32_t four = 0;
      __builtin_memcpy(&four, codes + 16 * quad + 4 * j, 4);
      const __m256i head = _mm256_set1_epi32(four);
      dots[j][0] = dot_add(dots[j][0], first, head);
      dots[j][1] = dot_add(dots[j][1], second, head);
    }
  }
  for (int j = 0; j < 4; ++j)
    for (int half = 0; half < 2; ++half) {
      const __m256 dot = _mm256_mul_ps(_mm256_cvtepi32_ps(dots[j][half]), _mm256_set1_ps(q.scale[h + j]));
      sum[half] = _mm256_add_ps(sum[half], _mm256_max_ps(dot, _mm256_setzero_ps()));
    }
}

inline __m256 from_bf16(const std::byte* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

inline void bound(const CodedQuery& q, const BlockCodes& codes, int64_t begin, int64_t end, float* low,
                  float* high) {
  const int64_t bytes = BlockCodes::tile_bytes(q.dim), n_codes = 64 * BlockCodes::quads(q.dim);
  const __m256 error = _mm256_set1_ps(q.error), length = _mm256_set1_ps(q.length);
  const __m256 tiny = _mm256_set1_ps(CodedQuery::kTiny);
  for (int64_t t = begin; t < end; ++t) {
    const std::byte* tile = codes.tile(t);
    for (int64_t byte = 0; byte < bytes; byte += 64)
      _mm_prefetch(reinterpret_cast<const char*>(tile) + kAhead + byte, _MM_HINT_T0);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int h = 0; h < q.n_heads; h += 4) add_heads(q, h, tile, sum);
    for (int half = 0; half < 2; ++half) {
      const std::byte* numbers = tile + n_codes;
      const __m256 scale = _mm256_loadu_ps(reinterpret_cast<const float*>(numbers) + 8 * half);
      const __m256 score = _mm256_mul_ps(sum[half], scale);
      const __m256 by_length = _mm256_mul_ps(length, from_bf16(numbers + 96 + 16 * half));
      const __m256 away = _mm256_add_ps(_mm256_mul_ps(error, from_bf16(numbers + 64 + 16 * half)),
                                        _mm256_add_ps(by_length, tiny));
      _mm256_storeu_ps(low + BlockCodes::kTile * t + 8 * half, _mm256_sub_ps(score, away));
      _mm256_storeu_ps(high + BlockCodes::kTile * t + 8 * half, _mm256_add_ps(score, away));
    }
  }
}

}  // namespace
}  // namespace forebay::block_codes_detail
