/// Holds a codec to what it says of itself, before a run depends on it.
#pragma once

#include <cstdint>

#include "forebay/result.h"

#include "train/wire/codec.h"

namespace forebay::train {

/// What the mean of many views of the same rows says.
struct BiasMeasure {
  int64_t n_draws = 0;
  double bias_energy = 0;  // |E x^ - x|^2 / |x|^2, estimated without the draws' own noise
  double bias_limit = 0;   // what noise (five standard errors) and bf16 explain
  double flat_slope = 0;   // mean of x^ . x / x . x for a row of +-1, which exact-k leaves without noise
  double flat_limit = 0;   // of |flat_slope - 1|
  bool unbiased() const;
};

/// Views of `n_draws` steps; both legs are the same function but for the noise, so the forward one is drawn.
BiasMeasure measure_bias(Codec& codec, int64_t width, int64_t n_draws);

/// 200 draws. Errors: kInvalidArgument when the codec declares unbiased and is not, or the reverse, with the
/// numbers; kInternal when encode + decode is not view to the bit, or bytes are not what it declares.
Result<void> self_test(Codec& codec, int64_t width);

}  // namespace forebay::train
