// The IQ1, IQ2 and IQ3 formats (layouts in quant/iq1.cpp, iq2.cpp, iq3.cpp), whose weights are rows of a
// grid: as int8_blocks_avx2.h describes formats, and under its rules.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/int8_fields_avx2.h"
#include "quant/iq_tables.h"
#include "tensor/dtype.h"

namespace forebay {
namespace {

/// What a codebook format finds out about a whole block before its runs: which weights of each run are
/// negative, and the rows of its grid, where they are not bytes of the block already.
struct Signs {
  alignas(32) uint32_t negative[8];
};
struct SignsAndRows : Signs {
  alignas(32) uint16_t row[32];
};

/// Four rows of a grid. Broadcast and blend: any port may do it, where inserts wait for one.
template <typename Index, size_t kRows>
__m256i octets(const Grid<uint64_t, kRows>& grid, const Index* i) {
#if defined(__AVX512VL__)
  const auto row = [&](int k) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(grid.rows + i[k])); };
  const __m256i two = _mm256_mask_broadcastq_epi64(_mm256_broadcastq_epi64(row(0)), 2, row(1));
  return _mm256_mask_broadcastq_epi64(_mm256_mask_broadcastq_epi64(two, 4, row(2)), 8, row(3));
#else
  const auto row = [&](int k) { return _mm256_set1_epi64x(static_cast<int64_t>(grid.rows[i[k]])); };
  return _mm256_blend_epi32(_mm256_blend_epi32(row(0), row(1), 0x0c),
                            _mm256_blend_epi32(row(2), row(3), 0xc0), 0xf0);
#endif
}
/// The same by their indices, in the order of a gather.
template <size_t kRows>
__m256i gathered(const Grid<uint64_t, kRows>& grid, __m128i index) {
  return _mm256_i32gather_epi64(reinterpret_cast<const long long*>(grid.rows), index, 8);
}
/// Four bytes, and above bit kAt of each as many bits as kWidth of `fields`, which lie kStep apart.
template <int kAt, int kStep, int kWidth = kStep>
__m128i joined_indices(const uint8_t* low, int fields) {
  const __m128i high =
      _mm_srlv_epi32(_mm_set1_epi32(fields << kAt), _mm_setr_epi32(0, kStep, 2 * kStep, 3 * kStep));
  return _mm_or_si128(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(load<int>(low))),
                      _mm_and_si128(high, _mm_set1_epi32(((1 << kWidth) - 1) << kAt)));
}
/// Seven signs in each byte, and an eighth that makes their number even.
__m256i with_eighth_sign(__m256i seven) {
  const __m256i folded = _mm256_and_si256(_mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4)), bytes(15));
  const __m256i odd =
      _mm256_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0, 0, -128, -128,
                       0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0);
  return _mm256_or_si256(seven, _mm256_shuffle_epi8(odd, folded));
}
void put_rows(__m256i first, __m256i second, SignsAndRows& lookup) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.row), first);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.row + 16), second);
}
void put_bits(const uint8_t* bits, Signs& lookup) {
  std::memcpy(lookup.negative, bits, sizeof lookup.negative);
}
/// The sign masks of eight runs from words that hold four times seven signs each, at bit 0.
void put_even_signs(__m256i words, Signs& lookup) {
  const auto part = [&](int l) {  // bits 7l .. 7l + 6 to byte l
    return _mm256_and_si256(_mm256_slli_epi32(words, l), lanes(127 << 8 * l));
  };
  const __m256i seven = _mm256_or_si256(_mm256_or_si256(part(0), part(1)), _mm256_or_si256(part(2), part(3)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.negative), with_eighth_sign(seven));
}

/// Scales of IQ2_XS and IQ2_S: d (0.5 + n) / 4 for sixteen nibbles n.
void put_iq2_scales(const uint8_t* const* rows, int64_t at, int64_t nibbles_at, float* s) {
  const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.25f));
  for (int part = 0; part < 2; ++part) {
    const __m256i v = dword_of_rows(rows, nibbles_at + 4 * part);
    for (int j = 0; j < 8; ++j)
      put(s + 8 * (8 * part + j), _mm256_mul_ps(d, _mm256_add_ps(number(v, 4 * j, 4), lanes(0.5f))));
  }
}

struct IQ2_XXS {
  static constexpr DType kType = DType::kIQ2_XXS;
  static constexpr int kWeights = 256, kBytes = 66;
  static constexpr bool kHalves = false, kMinima = false;
  using Lookup = Signs;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.25f));
    for (int j = 0; j < 8; ++j)
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(number(dword_of_rows(rows, at + 2 + 8 * j + 4), 28, 4),
                                                    lanes(0.5f))));
  }
  static void prepare(const uint8_t* b, Signs& lookup) {
    const __m256i words = _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(load_32(b + 2)), _mm256_castsi256_ps(load_32(b + 34)), 0xdd));
    put_even_signs(_mm256_permute4x64_epi64(words, 0xd8), lookup);
  }
  template <int kRun>
  static __m256i magnitudes(const uint8_t* b, const Signs&) {
    return octets(kIq2xxsGrid, b + 2 + 8 * kRun);
  }
};

struct IQ2_XS {
  static constexpr DType kType = DType::kIQ2_XS;
  static constexpr int kWeights = 256, kBytes = 74;
  static constexpr bool kHalves = true, kMinima = false;
  using Lookup = SignsAndRows;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    put_iq2_scales(rows, at, at + 66, s);
  }
  static void prepare(const uint8_t* b, SignsAndRows& lookup) {
    const __m256i first = load_32(b + 2), second = load_32(b + 34);
    const __m256i seven = _mm256_packus_epi16(_mm256_srli_epi16(first, 9), _mm256_srli_epi16(second, 9));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lookup.negative),
                        with_eighth_sign(_mm256_permute4x64_epi64(seven, 0xd8)));
    put_rows(_mm256_and_si256(first, _mm256_set1_epi16(511)),
             _mm256_and_si256(second, _mm256_set1_epi16(511)), lookup);
  }
  template <int kRun>
  static __m256i magnitudes(const uint8_t*, const SignsAndRows& lookup) {
    return octets(kIq2xsGrid, lookup.row + 4 * kRun);
  }
};

struct IQ2_S {
  static constexpr DType kType = DType::kIQ2_S;
  static constexpr int kWeights = 256, kBytes = 82;
  static constexpr bool kHalves = true, kMinima = false;
  using Lookup = SignsAndRows;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    put_iq2_scales(rows, at, at + 74, s);
  }
  static void prepare(const uint8_t* b, SignsAndRows& lookup) {
    put_bits(b + 34, lookup);
    // A byte of high bits for every four rows: as four words, each shifted to its own pair at bit 8.
    const __m256i high =
        _mm256_broadcastsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 66)));
    const auto rows = [&](const uint8_t* low, char at) {
      const auto byte = [at](int group) { return static_cast<char>(at + group); };
      const char z = -128, g0 = byte(0), g1 = byte(1), g2 = byte(2), g3 = byte(3);
      const __m256i spread =
          _mm256_shuffle_epi8(high, _mm256_setr_epi8(g0, z, g0, z, g0, z, g0, z, g1, z, g1, z, g1, z, g1, z,
                                                     g2, z, g2, z, g2, z, g2, z, g3, z, g3, z, g3, z, g3, z));
      const __m256i pairs = _mm256_mullo_epi16(
          spread, _mm256_set1_epi64x((int64_t{4} << 48) | (int64_t{16} << 32) | (int64_t{64} << 16) | 256));
      return _mm256_or_si256(_mm256_cvtepu8_epi16(load_16(low)),
                             _mm256_and_si256(pairs, _mm256_set1_epi16(0x300)));
    };
    put_rows(rows(b + 2, 0), rows(b + 18, 4), lookup);
  }
  template <int kRun>
  static __m256i magnitudes(const uint8_t*, const SignsAndRows& lookup) {
    return octets(kIq2sGrid, lookup.row + 4 * kRun);
  }
};

struct IQ3_XXS {
  static constexpr DType kType = DType::kIQ3_XXS;
  static constexpr int kWeights = 256, kBytes = 98;
  static constexpr bool kHalves = false, kMinima = false;
  using Lookup = Signs;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.5f));
    for (int part = 0; part < 2; ++part) {
      const RowDwords words = dwords_of_rows(rows, at + 66 + 16 * part);
      for (int j = 0; j < 4; ++j)
        put(s + 8 * (4 * part + j), _mm256_mul_ps(d, _mm256_add_ps(number(words.v[j], 28, 4), lanes(0.5f))));
    }
  }
  static void prepare(const uint8_t* b, Signs& lookup) { put_even_signs(load_32(b + 66), lookup); }
  template <int kRun>
  static __m256i magnitudes(const uint8_t* b, const Signs&) {
    const __m256i index =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 2 + 8 * kRun)));
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(kIq3xxsGrid.rows), index, 4);
  }
};

struct IQ3_S {
  static constexpr DType kType = DType::kIQ3_S;
  static constexpr int kWeights = 256, kBytes = 110;
  static constexpr bool kHalves = false, kMinima = false;
  using Lookup = Signs;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = half_of_rows(rows, at);
    const __m256i codes = dword_of_rows(rows, at + 106);
    for (int j = 0; j < 8; ++j) {
      const __m256 code = number(codes, 4 * j, 4);
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(_mm256_add_ps(code, code), lanes(1.0f))));
    }
  }
  static void prepare(const uint8_t* b, Signs& lookup) { put_bits(b + 74, lookup); }
  template <int kRun>
  static __m256i magnitudes(const uint8_t* b, const Signs&) {
    const __m256i low =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 2 + 8 * kRun)));
    const __m256i ninth = _mm256_and_si256(
        _mm256_sllv_epi32(lanes(static_cast<int>(b[66 + kRun])), _mm256_setr_epi32(8, 7, 6, 5, 4, 3, 2, 1)),
        lanes(256));
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(kIq3sGrid.rows), _mm256_or_si256(low, ninth),
                                  4);
  }
};

/// Eight times the grid's -1, 0, 1, plus `shifts`.
__m256i shifted_grid(__m256i grid, __m256i shifts) {
  return _mm256_add_epi8(_mm256_slli_epi16(_mm256_and_si256(grid, bytes(0x1f)), 3), shifts);
}

struct IQ1_S {
  static constexpr DType kType = DType::kIQ1_S;
  static constexpr int kWeights = 256, kBytes = 50, kOffset = 16;
  static constexpr bool kHalves = false, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256 d = _mm256_mul_ps(half_of_rows(rows, at), lanes(0.125f));
    const RowDwords words = dwords_of_rows(rows, at + 34);
    for (int j = 0; j < 8; ++j) {
      const __m256 code = number(words.v[j / 2], 16 * (j % 2) + 12, 3);
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(_mm256_add_ps(code, code), lanes(1.0f))));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const int word = load<uint16_t>(b + 34 + 2 * kRun);
    return shifted_grid(gathered(kIq1Grid, joined_indices<8, 3>(b + 2 + 4 * kRun, word)),
                        bytes((word & 0x8000) != 0 ? 15 : 17));
  }
};

struct IQ1_M {
  static constexpr DType kType = DType::kIQ1_M;
  static constexpr int kWeights = 256, kBytes = 56, kOffset = 16;
  static constexpr bool kHalves = true, kMinima = false;
  static void scales(const uint8_t* const* rows, int64_t at, float* s, float*) {
    const __m256i words[2] = {dword_of_rows(rows, at + 48), dword_of_rows(rows, at + 52)};
    const auto nibble = [&](int k) {  // bits 4k .. 4k + 3 of d
      const __m256i top = _mm256_srli_epi32(words[k / 2], k % 2 == 0 ? 12 : 28);
      return _mm256_slli_epi32(_mm256_and_si256(top, lanes(15)), 4 * k);
    };
    const __m256i bits =
        _mm256_or_si256(_mm256_or_si256(nibble(0), nibble(1)), _mm256_or_si256(nibble(2), nibble(3)));
    const __m256 d = _mm256_mul_ps(from_half_lanes(bits), lanes(0.125f));
    for (int j = 0; j < 16; ++j) {
      const __m256 code = number(words[j / 8], 16 * (j / 4 % 2) + 3 * (j % 4), 3);
      put(s + 8 * j, _mm256_mul_ps(d, _mm256_add_ps(_mm256_add_ps(code, code), lanes(1.0f))));
    }
  }
  template <int kRun>
  static __m256i codes(const uint8_t* b) {
    const int nibbles = load<uint16_t>(b + 32 + 2 * kRun);
    const __m256i grid = gathered(kIq1Grid, joined_indices<8, 4, 3>(b + 4 * kRun, nibbles));
    const __m128i down = _mm_and_si128(_mm_srlv_epi32(_mm_set1_epi32(nibbles), _mm_setr_epi32(0, 4, 8, 12)),
                                       _mm_set1_epi32(8));
    const __m256i is_down = _mm256_cvtepi32_epi64(_mm_cmpeq_epi32(down, _mm_set1_epi32(8)));
    return shifted_grid(grid, _mm256_add_epi8(bytes(17), _mm256_and_si256(is_down, bytes(-2))));
  }
};

}  // namespace
}  // namespace forebay
