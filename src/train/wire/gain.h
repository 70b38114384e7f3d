/// What an exact-k codec multiplies its coordinates with, and whether that is unbiased.
#pragma once

#include <cmath>

#include "train/wire/codec_options.h"

namespace forebay::train {

struct MaskGain {
  double value = 1;
  Bias bias = Bias::kUnbiased;
};

inline MaskGain mask_gain(const CodecOptions& options, int64_t width) {
  const double exact = static_cast<double>(width) / static_cast<double>(options.k);
  if (options.gain == Gain::kExact) return {exact, Bias::kUnbiased};
  const double value = 1 / options.keep;
  // Below what f32 tells apart the two are one.
  return {value, std::abs(value / exact - 1) < 1e-6 ? Bias::kUnbiased : Bias::kBiased};
}

}  // namespace forebay::train
