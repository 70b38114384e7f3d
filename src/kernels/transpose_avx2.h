// For files built with AVX2 or more; include nowhere else.
#pragma once

#include <cstdint>

#include "core/vectors.h"

// For pieces of a loop over registers: GCC thinks them too large, and a call would pass eight vectors through
// memory.
#define FOREBAY_INLINE __attribute__((always_inline)) inline

namespace forebay {
namespace {

/// The 8 x 8 transposition of dwords, stored `stride` bytes apart.
FOREBAY_INLINE void store_transposed(const __m256i* r, uint8_t* to, int64_t stride) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    auto* low = reinterpret_cast<__m256i*>(to + i * stride);
    auto* high = reinterpret_cast<__m256i*>(to + (i + 4) * stride);
    _mm256_store_si256(low, _mm256_permute2x128_si256(b[i], b[i + 4], 0x20));
    _mm256_store_si256(high, _mm256_permute2x128_si256(b[i], b[i + 4], 0x31));
  }
}

}  // namespace
}  // namespace forebay
