/// The settings of a codec, as a recipe gives them.
#pragma once

#include <cstdint>
#include <string>

#include "train/wire/subset.h"

namespace forebay::train {

/// What multiplies the coordinates that an exact-k codec sends: W/k, which is unbiased, or the 1/(1-p) of
/// "keep each with probability 1-p", which is not when k was rounded.
enum class Gain { kExact, kKeepRate };

/// Everything here changes results. Zero means: what fits the width, as said.
struct CodecOptions {
  std::string name = "dense";  // dense, prf, sr, rn, prf-sr, powersgd, frlr, frlr-unbiased
  uint64_t seed = 0;           // of the first basis; noise takes its seed from the WireKey

  /// Exact-k. The budget of a row is about keep * W 16-bit numbers; raising it costs bytes, lowers noise.
  double keep = 0.05;
  int64_t k = 0;  // prf: round(keep * W); prf-sr: as many as the same bits pay for
  MaskScope scope = MaskScope::kStep;
  Gain gain = Gain::kExact;

  /// Rounding.
  int bits = 4;        // 1..8
  int64_t group = 32;  // coordinates that share a 16-bit scale
  bool share = true;   // false, a control: every pass over the rows has noise of its own

  /// Bases. Together rank + k_residual + 1 numbers of 16 bits.
  int64_t rank = 0;        // frlr: round(W / 32); powersgd: round(keep * W)
  int64_t k_residual = 0;  // frlr: round(W * 28 / 1536)
  double gamma_max = 0;    // frlr: W / k_residual, the unbiased gain
  bool accumulate = true;  // the sketch is of all steps since the last refresh; false: of the last one
};

}  // namespace forebay::train
