/// What the machine can do at best: the figures that kernels are compared with. Each function does a fixed
/// amount of work that a compiler cannot remove.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <immintrin.h>

#include "core/thread_pool.h"

namespace forebay::ceilings {

/// Reads every byte once, in pieces of 256 KiB; returns something that depends on all of them.
__attribute__((target("avx2"))) inline uint64_t read_piece(const std::byte* p, int64_t n) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  const auto* v = reinterpret_cast<const __m256i*>(p);
  for (int64_t i = 0; i + 4 <= n / 32; i += 4) {
    // The kernels' own distances: the processor's prefetcher stops at every page.
    const char* at = reinterpret_cast<const char*>(v + i);
    for (int line = 0; line < 128; line += 64) {
      _mm_prefetch(at + 8192 + line, _MM_HINT_T0);
      _mm_prefetch(at + 8192 + 16384 + line, _MM_HINT_T1);
    }
    a = _mm256_xor_si256(a, _mm256_loadu_si256(v + i));
    b = _mm256_xor_si256(b, _mm256_loadu_si256(v + i + 1));
    c = _mm256_xor_si256(c, _mm256_loadu_si256(v + i + 2));
    d = _mm256_xor_si256(d, _mm256_loadu_si256(v + i + 3));
  }
  a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
  return static_cast<uint64_t>(_mm256_extract_epi64(a, 0) ^ _mm256_extract_epi64(a, 1) ^
                               _mm256_extract_epi64(a, 2) ^ _mm256_extract_epi64(a, 3));
}

inline uint64_t read_all(ThreadPool& pool, std::span<const std::byte> bytes) {
  constexpr int64_t kPiece = 256 * 1024;
  const auto n_pieces = static_cast<int64_t>(bytes.size()) / kPiece;
  volatile uint64_t sink[64] = {};
  pool.parallel_for(n_pieces, 1, [&](int64_t begin, int64_t end, int thread) {
    sink[thread % 64] = sink[thread % 64] ^ read_piece(bytes.data() + begin * kPiece, (end - begin) * kPiece);
  });
  return sink[0];
}

/// Multiply-adds of f32 in ten independent chains of eight lanes: n x 80 of them.
__attribute__((target("avx2,fma"))) inline float fma_chains(int64_t n) {
  __m256 acc[10];
  for (int i = 0; i < 10; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 10
    for (int c = 0; c < 10; ++c) acc[c] = _mm256_fmadd_ps(acc[c], x, y);
  float sum = 0;
  for (const __m256& a : acc) sum += _mm256_cvtss_f32(a);
  return sum;
}

/// Multiply-adds of bytes into 32-bit sums, the AVX2 way (maddubs, madd, add): n x 8 x 32 of them.
__attribute__((target("avx2"))) inline int32_t madd_chains(int64_t n) {
  __m256i acc[8], u = _mm256_set1_epi8(3);
  for (int i = 0; i < 8; ++i) acc[i] = _mm256_set1_epi8(static_cast<char>(i));
  const __m256i ones = _mm256_set1_epi16(1), s = _mm256_set1_epi8(-2);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) {
      asm volatile("" : "+x"(u));  // or the compiler would take the products out of the loop
      acc[c] = _mm256_add_epi32(acc[c], _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), ones));
    }
  int32_t sum = 0;
  for (const __m256i& a : acc) sum += _mm256_extract_epi32(a, 0);
  return sum;
}

/// The same with AVX-512 VNNI: n x 12 x 64.
__attribute__((target("avx512f,avx512vnni"))) inline int32_t vnni_chains(int64_t n) {
  __m512i acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = _mm512_set1_epi32(i);
  const __m512i u = _mm512_set1_epi8(3), s = _mm512_set1_epi8(-2);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < 12; ++c) acc[c] = _mm512_dpbusd_epi32(acc[c], u, s);
  for (int c = 1; c < 12; ++c) acc[0] = _mm512_xor_si512(acc[0], acc[c]);
  return _mm512_cvtsi512_si32(acc[0]);
}

}  // namespace forebay::ceilings
