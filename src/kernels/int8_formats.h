/// The block formats as integers times scales: what an integer dot product multiplies. Weight i of a run of
/// 32 is
///   scale * code[i] + minimum
/// with one scale (and minimum) for the run, or one for each half of 16. Every scale is exact in f32.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace forebay {

struct WeightRun {
  int8_t code[32];
  float scale[2];    // of the halves; equal where a run has one
  float minimum[2];  // 0 where the format has none
};

struct Int8Format {
  DType type;
  bool halves;  // scales change every 16 weights
  bool has_minima;
  /// Run `run` of a block.
  void (*unpack)(const uint8_t* block, int run, WeightRun& out);
};

/// Null for the types that are always multiplied as f32: F32, F16, BF16 and the formats that no supported
/// file family uses for matrices (TQ1_0, TQ2_0, Q1_0).
const Int8Format* find_int8_format(DType type);

}  // namespace forebay
