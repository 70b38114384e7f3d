// Matrix-vector products and panel unpacking over the formats of int8_blocks_avx2.h, eight weight rows at a
// time. Built with AVX2, with AVX-512 VNNI and with NEON, like that file.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>

#include "kernels/byte_dot.h"
#include "kernels/int8_blocks_avx2.h"
#include "kernels/int8_codebooks_avx2.h"
#include "kernels/int8_dot.h"
#include "kernels/rows_avx2.h"
#include "kernels/simd_avx2.h"
#include "kernels/transpose_avx2.h"

namespace forebay {
namespace {

/// How a format gives its codes.
template <typename F>
concept WithMasks = requires {
  &F::prepare;
};
template <typename F>
concept WithSigns = requires(const uint8_t* b) {
  { F::template codes<0>(b) } -> std::same_as<Signed>;
};
template <typename F>
concept WithOffset = !WithMasks<F> && !WithSigns<F>;

template <typename F>
inline constexpr int kRuns = F::kWeights / 32;
template <typename F>
inline constexpr int kUnits = kRuns<F>*(F::kHalves ? 2 : 1);
/// The power of two in F::kOffset; -1 for 0.
template <typename F>
constexpr int offset_bits() {
  if constexpr (WithOffset<F>) return F::kOffset == 0 ? -1 : __builtin_ctz(F::kOffset);
  return -1;
}

/// v with the bytes negated whose bit in `mask` is set.
__m256i negated_where(uint32_t mask, __m256i v) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_mask_sub_epi8(v, mask, _mm256_setzero_si256(), v);
#else
  const __m256i negative = spread_bits(mask);
  return _mm256_sub_epi8(_mm256_xor_si256(v, negative), negative);
#endif
}

/// Eight sums of four products of codes with signs of their own.
FOREBAY_INLINE __m256i dot_signed(Signed w, __m256i q) {
#if defined(__aarch64__)
  return dot(w.code, q);
#else
  return dot(w.magnitude, _mm256_sign_epi8(q, w.code));
#endif
}

template <typename F>
struct LookupIn {
  using Type = void;
};
template <WithMasks F>
struct LookupIn<F> {
  using Type = typename F::Lookup;
};
template <typename F>
using LookupOf = typename LookupIn<F>::Type;

/// What add_run needs of a block of eight rows besides their bytes.
template <typename F>
struct Prepared {
  Prepared(const uint8_t* const*, int64_t) {}
  const void* of(int) const { return nullptr; }
};
template <WithMasks F>
struct Prepared<F> {
  Prepared(const uint8_t* const* rows, int64_t at) {
    for (int r = 0; r < kRowsAtOnce; ++r) F::prepare(rows[r] + at, row[r]);
    // Or the compiler would take them apart again instead of loading them.
    asm volatile("" : "+m"(row));
  }
  const LookupOf<F>* of(int r) const { return row + r; }
  LookupOf<F> row[kRowsAtOnce];
};

/// Eight sums of four products of run kRun's codes, kOffset above, with q.
template <typename F, int kRun>
FOREBAY_INLINE __m256i dot_run(const uint8_t* b, const LookupOf<F>* lookup, __m256i q) {
  if constexpr (WithMasks<F>) {
    return dot(F::template magnitudes<kRun>(b, *lookup), negated_where(lookup->negative[kRun], q));
  } else if constexpr (WithSigns<F>) {
    return dot_signed(F::template codes<kRun>(b), q);
  } else {
    return dot(F::template codes<kRun>(b), q);
  }
}

/// Whether sums of four products fit 16 bits, which are quicker to add: 4 x 64 x 127 do. Where an instruction
/// adds neighbours by itself there is nothing to gain.
#if defined(__aarch64__)
template <typename F>
inline constexpr bool kSumsAreWords = false;
#else
template <typename F>
inline constexpr bool kSumsAreWords = !WithSigns<F>;
#endif
/// Sums of two neighbouring lanes of a and of b, like a horizontal addition.
FOREBAY_INLINE __m256i added_as_words(__m256i a, __m256i b) {
  return _mm256_madd_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(1));
}

/// Sums over the lower and the upper four lanes of eight vectors, a lane for each vector.
struct HalfSums {
  __m256i low, high;
};
template <bool kWords>
FOREBAY_INLINE HalfSums half_sums(const __m256i* s) {
  const auto pairs = [&](int i) {
    return kWords ? added_as_words(s[i], s[i + 1]) : _mm256_hadd_epi32(s[i], s[i + 1]);
  };
  const __m256i a = _mm256_hadd_epi32(pairs(0), pairs(2)), b = _mm256_hadd_epi32(pairs(4), pairs(6));
  return {_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)};
}

/// acc + S * (scale * x scale), S still kOffset times the sum of q too large.
template <int kOffsetBits>
__m256 accumulate(__m256i sums, const int32_t* q_sum, const float* scale, __m256 x_scale, __m256 acc) {
  if constexpr (kOffsetBits >= 0)
    sums = _mm256_sub_epi32(sums, _mm256_slli_epi32(lanes(*q_sum), kOffsetBits));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_mul_ps(_mm256_load_ps(scale), x_scale), acc);
}

/// Scales and minima of one block of eight rows.
template <typename F>
struct BlockScales {
  alignas(32) float scale[kUnits<F> * 8];
  alignas(32) float minimum[F::kMinima ? kUnits<F> * 8 : 8];
};

template <typename F, int kRun>
FOREBAY_INLINE __m256 add_run(const uint8_t* const* rows, int64_t at, const BlockScales<F>& s,
                              const Prepared<F>& prepared, const Int8Row& x, int64_t block, __m256 acc) {
  constexpr int kBits = offset_bits<F>();
  const int64_t j = block * kRuns<F> + kRun;
  const __m256i q = load_32(x.q + 32 * j);
  __m256i sums[kRowsAtOnce];
#pragma GCC unroll 8
  for (int r = 0; r < kRowsAtOnce; ++r) sums[r] = dot_run<F, kRun>(rows[r] + at, prepared.of(r), q);
  const HalfSums both = half_sums<kSumsAreWords<F>>(sums);
  const __m256 x_scale = lanes(x.scale[j]);
  if constexpr (F::kHalves) {
    const float* scale = s.scale + 16 * kRun;
    const float* minimum = s.minimum + 16 * kRun;
    acc = accumulate<kBits>(both.low, x.half_sum + 2 * j, scale, x_scale, acc);
    if constexpr (F::kMinima)
      acc = _mm256_fmadd_ps(_mm256_load_ps(minimum), lanes(x.half_value_sum[2 * j]), acc);
    acc = accumulate<kBits>(both.high, x.half_sum + 2 * j + 1, scale + 8, x_scale, acc);
    if constexpr (F::kMinima)
      acc = _mm256_fmadd_ps(_mm256_load_ps(minimum + 8), lanes(x.half_value_sum[2 * j + 1]), acc);
  } else {
    acc =
        accumulate<kBits>(_mm256_add_epi32(both.low, both.high), x.sum + j, s.scale + 8 * kRun, x_scale, acc);
    if constexpr (F::kMinima)
      acc = _mm256_fmadd_ps(_mm256_load_ps(s.minimum + 8 * kRun), lanes(x.value_sum[j]), acc);
  }
  return acc;
}

template <typename F>
__m256 add_block(const uint8_t* const* rows, int64_t at, const Int8Row& x, int64_t block, Prefetcher& ahead,
                 __m256 acc) {
  BlockScales<F> s;
  F::scales(rows, at, s.scale, s.minimum);
  const Prepared<F> prepared(rows, at);
  [&]<int... kRun>(std::integer_sequence<int, kRun...>) {
    ((ahead.advance(kRowsAtOnce * F::kBytes / kRuns<F>),
      acc = add_run<F, kRun>(rows, at, s, prepared, x, block, acc)),
     ...);
  }
  (std::make_integer_sequence<int, kRuns<F>>{});
  return acc;
}

/// Four bit planes of a block at a time, against activations in the same order; each vector holds a block of
/// row r and one of row r + 4.
__m256 add_q2_0_block(const uint8_t* const* rows, int64_t at, const Int8Row& x, int64_t block, __m256 acc) {
  __m256i planes[4];
  for (int t = 0; t < 4; ++t)
    planes[t] = _mm256_broadcastsi128_si256(load_16(x.planes + 64 * block + 16 * t));
  const __m256i pair = bytes(3);
  __m256i sums[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(rows[r] + at + 2)),
                                              load_16(rows[r + 4] + at + 2), 1);
    const __m256i q0 = _mm256_and_si256(v, pair), q1 = _mm256_and_si256(_mm256_srli_epi16(v, 2), pair);
    const __m256i q2 = _mm256_and_si256(_mm256_srli_epi16(v, 4), pair),
                  q3 = _mm256_and_si256(_mm256_srli_epi16(v, 6), pair);
#if FOREBAY_HAS_BYTE_DOT
    const __m256i a = dot_add(dot(q0, planes[0]), q1, planes[1]);
    sums[r] = dot_add(dot_add(a, q2, planes[2]), q3, planes[3]);
#else
    const __m256i a =
        _mm256_add_epi16(_mm256_maddubs_epi16(q0, planes[0]), _mm256_maddubs_epi16(q1, planes[1]));
    const __m256i b =
        _mm256_add_epi16(_mm256_maddubs_epi16(q2, planes[2]), _mm256_maddubs_epi16(q3, planes[3]));
    sums[r] = _mm256_madd_epi16(_mm256_add_epi16(a, b), _mm256_set1_epi16(1));
#endif
  }
  // Lanes of a sum: run 0, run 0, run 1, run 1 of row r, then of row r + 4.
  const __m256 a = _mm256_castsi256_ps(_mm256_hadd_epi32(sums[0], sums[1]));
  const __m256 b = _mm256_castsi256_ps(_mm256_hadd_epi32(sums[2], sums[3]));
  const __m256i run[2] = {_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
                          _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd))};
  const __m256 d = half_of_rows(rows, at);
  for (int64_t j = 0; j < 2; ++j) {
    const __m256i sum = _mm256_sub_epi32(run[j], lanes(x.sum[2 * block + j]));
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(d, lanes(x.scale[2 * block + j])), acc);
  }
  return acc;
}

template <typename F>
void matvec(const MatrixView& w, int64_t n0, int64_t n1, const Int8Row& x, float* y) {
  const int64_t n_blocks = w.n_cols / F::kWeights;
  for (int64_t n = n0; n < n1; n += kRowsAtOnce) {
    const RowPointers rows(w, n, n1);
    Prefetcher prefetcher(w, n);
    __m256 acc = _mm256_setzero_ps();
    for (int64_t block = 0; block < n_blocks; ++block) {
      if constexpr (F::kType == DType::kQ2_0) {
        prefetcher.advance(kRowsAtOnce * F::kBytes);
        acc = add_q2_0_block(rows.row, block * F::kBytes, x, block, acc);
      } else {
        acc = add_block<F>(rows.row, block * F::kBytes, x, block, prefetcher, acc);
      }
    }
    simd::store(y + n, n1 - n, acc);
  }
}

/// Codes with masks fit seven bits once 64 is added; those with signs of their own keep them, or, where no
/// product overflows, get 128.
template <typename F>
constexpr int8_detail::PanelForm panel_form() {
  int8_detail::PanelForm form;
  form.halves = F::kHalves;
  form.has_minima = F::kMinima;
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  form.offset_bits = WithSigns<F> ? 7 : WithMasks<F> ? 6 : offset_bits<F>();
#else
  form.is_signed = WithSigns<F>;
  form.offset_bits = WithMasks<F> ? 6 : offset_bits<F>();
#endif
  return form;
}

template <typename F, int kRun>
FOREBAY_INLINE __m256i panel_codes(const uint8_t* b, const LookupOf<F>* lookup) {
  if constexpr (WithOffset<F>) {
    return F::template codes<kRun>(b);
  } else if constexpr (WithMasks<F>) {
    return _mm256_add_epi8(negated_where(lookup->negative[kRun], F::template magnitudes<kRun>(b, *lookup)),
                           bytes(64));
  } else {
    const __m256i v = F::template codes<kRun>(b).code;
    return panel_form<F>().is_signed ? v : _mm256_xor_si256(v, bytes(128));
  }
}

template <typename F, int kRun>
FOREBAY_INLINE void unpack_run(const uint8_t* const* rows, int64_t at, const Prepared<F>& prepared,
                               uint8_t* to, int64_t stride) {
  __m256i v[kRowsAtOnce];
#pragma GCC unroll 8
  for (int r = 0; r < kRowsAtOnce; ++r) v[r] = panel_codes<F, kRun>(rows[r] + at, prepared.of(r));
  store_transposed(v, to, stride);
}

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
constexpr int kPanelWidth = int8_detail::kWidthVnni;
#else
constexpr int kPanelWidth = int8_detail::kWidthAvx2;
#endif

/// One block of eight rows to their places in the panel, from column `group` on.
template <typename F>
void unpack_block(const RowPointers& rows, int64_t block, const int8_detail::Panel& panel, int group) {
  const int64_t at = block * F::kBytes;
  BlockScales<F> s;
  F::scales(rows.row, at, s.scale, s.minimum);
  for (int unit = 0; unit < kUnits<F>; ++unit) {
    const int64_t to = (block * kUnits<F> + unit) * kPanelWidth + group;
    _mm256_store_ps(panel.scales + to, _mm256_load_ps(s.scale + 8 * unit));
    if constexpr (F::kMinima) _mm256_store_ps(panel.minima + to, _mm256_load_ps(s.minimum + 8 * unit));
  }
  const Prepared<F> prepared(rows.row, at);
  uint8_t* codes = panel.codes + (block * F::kWeights * kPanelWidth + group * 4);
  [&]<int... kRun>(std::integer_sequence<int, kRun...>) {
    (unpack_run<F, kRun>(rows.row, at, prepared, codes + kRun * 32 * kPanelWidth, 4 * kPanelWidth), ...);
  }
  (std::make_integer_sequence<int, kRuns<F>>{});
}

/// Block by block over all rows of the panel: a line of it is written at once.
template <typename F>
void unpack(const MatrixView& w, int64_t n, int64_t n_end, const int8_detail::Panel& panel) {
  const RowPointers first(w, n, n_end), second(w, n + kRowsAtOnce, n_end);
  for (int64_t block = 0; block < w.n_cols / F::kWeights; ++block) {
    unpack_block<F>(first, block, panel, 0);
    if constexpr (kPanelWidth > kRowsAtOnce) unpack_block<F>(second, block, panel, kRowsAtOnce);
  }
}

template <typename F>
struct KernelsOf {
  static constexpr DType kType = F::kType;
  /// Where unpacking a panel starts to pay, by measurement: at once where finding the codes is slow.
  static constexpr bool kHasGrid = WithMasks<F> || F::kType == DType::kIQ1_S || F::kType == DType::kIQ1_M;
  static constexpr int kPanelRows = kHasGrid ? 2 : F::kType == DType::kQ2_0 ? 4 : 3;
  static constexpr int8_detail::Int8Kernels kKernels{matvec<F>, unpack<F>, panel_form<F>(), kPanelRows};
};

template <typename... F>
const int8_detail::Int8Kernels* find_in(DType type) {
  const int8_detail::Int8Kernels* found = nullptr;
  ((F::kType == type ? void(found = &KernelsOf<F>::kKernels) : void()), ...);
  return found;
}

const int8_detail::Int8Kernels* find_kernels(DType type) {
  return find_in<Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4,
                 NVFP4, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ1_S, IQ1_M>(type);
}

}  // namespace
}  // namespace forebay
