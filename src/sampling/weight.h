#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace forebay {

/// e^x for x <= 0 within 2 ulp, 0 below -708. Additions, multiplications and an exact scaling only, so the
/// bits are the same on every machine; a libm may choose other code for another processor.
inline double weight(double x) {
  if (!(x >= -708.0)) return 0;
  // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
  constexpr double kLog2E = 1.4426950408889634, kRound = 0x1.8p52;
  const double rounded = x * kLog2E + kRound, k = rounded - kRound;
  // ln 2 in two parts; the first has 21 trailing zero bits, so that k * kLn2High is exact for |k| < 2^11.
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor to r^13 / 13!, the rest is below 2^-57. In pairs, so that the products do not wait for each other.
  const double r2 = r * r, r4 = r2 * r2;
  const double p2 = 1.0 / 2 + r * (1.0 / 6), p4 = 1.0 / 24 + r * (1.0 / 120),
               p6 = 1.0 / 720 + r * (1.0 / 5040);
  const double p8 = 1.0 / 40320 + r * (1.0 / 362880), p10 = 1.0 / 3628800 + r * (1.0 / 39916800);
  const double p12 = 1.0 / 479001600 + r * (1.0 / 6227020800);
  const double high = (p8 + r2 * p10) + r4 * p12, middle = p4 + r2 * p6;
  const double e_r = 1.0 + (r + r2 * (p2 + r2 * middle + r2 * r4 * high));
  const uint64_t exponent = (std::bit_cast<uint64_t>(rounded) + 1023) << 52;
  return e_r * std::bit_cast<double>(exponent);
}

/// out[i] = weight(x[i]), to the same bits, several at a time where the processor can. May be in place.
void weights(const double* x, size_t n, double* out);

namespace sampling_detail {
void weights_ref(const double* x, size_t n, double* out);
/// Wants AVX2. n is a multiple of 4.
void weights_avx2(const double* x, size_t n, double* out);
}  // namespace sampling_detail

/// The sum of weight(x_of(i)) for i in [0, n), added in that order.
template <typename At>
double sum_of_weights(size_t n, At x_of) {
  constexpr size_t kPiece = 256;
  double piece[kPiece];
  double sum = 0;
  for (size_t first = 0; first < n; first += kPiece) {
    const size_t m = n - first < kPiece ? n - first : kPiece;
    for (size_t i = 0; i < m; ++i) piece[i] = x_of(first + i);
    weights(piece, m, piece);
    for (size_t i = 0; i < m; ++i) sum += piece[i];
  }
  return sum;
}

}  // namespace forebay
