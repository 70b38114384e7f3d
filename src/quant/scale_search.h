/// Private to this folder: searches for the scale that makes a run of weights fit its integer codes best.
/// Each tries a short list of inverse scales and refits by least squares; float sums run left to right, so
/// that the codes are those of the reference quantiser.
#pragma once

#include <cstdint>
#include <span>

namespace forebay {

/// x ~ scale * code + minimum, minimum <= 0.
struct AffineFit {
  float scale;
  float minimum;
};

struct AffineSearch {
  int max_code;
  float first_step;  // trial s aims the range at max_code + first_step + 0.1 s
  int n_trials;
  bool absolute_error;  // judge a trial by sum of importance * |error| instead of error squared
};

/// Fits a run of at most 32 weights; writes a code per weight. A constant run with nothing below zero's
/// reach (max equals the minimum) gets scale 0 and codes 0.
AffineFit fit_affine(std::span<const float> x, std::span<const float> importance, const AffineSearch& search,
                     uint8_t* codes);

/// x ~ scale * code, code in [-half_range, half_range - 1]. A run below 1e-15 gets scale 0 and the lowest
/// code.
float fit_symmetric_scan(std::span<const float> x, int half_range, int8_t* codes);
/// The same fit by coordinate descent on single codes instead of a scan over scales.
float fit_symmetric_descent(std::span<const float> x, int half_range, int8_t* codes);

/// x ~ scale * values[code] for an ascending table of 16 values whose first is the largest in magnitude;
/// weighs errors by x squared. 0 for a run below 1e-15.
float fit_table_scan(std::span<const float> x, const int8_t* values);
/// The code of the table value nearest to x; the upper one at an exact midpoint.
int nearest_in_table(const int8_t* values, float x);

/// Runs smaller than this are treated as zero by the symmetric and table searches.
inline constexpr float kNegligible = 1e-15f;

}  // namespace forebay
