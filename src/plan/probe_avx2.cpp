#include "core/vectors.h"
#include "plan/probe.h"

namespace forebay::probe_detail {

uint64_t sum_avx2(const std::byte* data, uint64_t bytes) {
  // Four sums: an addition does not wait for the one before it.
  __m256i sums[4] = {};
  uint64_t at = 0;
  for (; at + 128 <= bytes; at += 128)
    for (int i = 0; i < 4; ++i)
      sums[i] =
          _mm256_add_epi64(sums[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + at + 32 * i)));
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + sum_ref(data + at, bytes - at);
}

}  // namespace forebay::probe_detail
