// Products of bytes added into 32-bit lanes, with the best that the file is built for; include nowhere else.
#pragma once

#include "core/vectors.h"

// Whether one instruction multiplies and adds four bytes to a lane.
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__ARM_FEATURE_DOTPROD)
#define FOREBAY_HAS_BYTE_DOT 1
#else
#define FOREBAY_HAS_BYTE_DOT 0
#endif

namespace forebay {
namespace {

/// acc + eight sums of four products of unsigned and signed bytes; u is at most 127, where the processor
/// takes unsigned ones 128 or (VNNI) anything.
inline __m256i dot_add(__m256i acc, __m256i u, __m256i s) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpbusd_epi32(acc, u, s);
#elif defined(__ARM_FEATURE_DOTPROD)
  const auto half = [](int32x4_t sum, int32x4_t a, int32x4_t b) {
    return vdotq_s32(sum, neon::as<int8x16_t>(a), neon::as<int8x16_t>(b));
  };
  return {half(acc.low, u.low, s.low), half(acc.high, u.high, s.high)};
#else
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
#endif
}
inline __m256i dot(__m256i u, __m256i s) {
  return dot_add(_mm256_setzero_si256(), u, s);
}

}  // namespace
}  // namespace forebay
