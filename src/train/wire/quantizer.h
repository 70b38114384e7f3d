/// b bits per coordinate: 2^b levels from -s to s, s the largest absolute value of a group of coordinates.
#pragma once

#include <cstdint>

#include <torch/torch.h>

#include "train/wire/codec.h"
#include "train/wire/codec_options.h"

namespace forebay::train {

/// With levels D = 2 s / (2^b - 1) apart and z = (x + s) / D: q is floor(z) + Bernoulli(frac z), or the
/// nearest to z; x^ = q D - s. Rounding at random is unbiased because nothing is clamped: s is bf16, rounded
/// up. (bf16, not f16: gradients are often below what f16 holds.) Confined.
class Quantizer {
 public:
  Quantizer(const CodecOptions& options, bool stochastic);

  int bits() const { return bits_; }
  int64_t n_groups(int64_t width) const { return (width + group_ - 1) / group_; }
  /// Logical bits of a row: groups at the end count by the coordinates they hold.
  double row_bits(int64_t width) const;

  struct Coded {
    torch::Tensor codes_NW;   // uint8
    torch::Tensor scales_NG;  // bf16, never below a group's largest absolute value
  };
  /// x f32, contiguous. On the CPU row by row (quantize_rows.h), elsewhere with tensors.
  Coded quantize(const torch::Tensor& x_NW, const WireKey& key, Leg leg);
  torch::Tensor dequantize(const Coded& coded) const;

  /// The definition, on any device: the same to the bit, but for the codes of groups whose scale is not
  /// finite, which come back as NaN whatever the codes.
  Coded quantize_with_tensors(const torch::Tensor& x_NW, const WireKey& key, Leg leg);
  torch::Tensor dequantize_with_tensors(const Coded& coded) const;

  /// How many passes had noise of their own (share = false); state of a run.
  int64_t n_passes() const { return n_passes_; }
  void set_n_passes(int64_t n) { n_passes_ = n; }

 private:
  uint64_t noise_stream(const WireKey& key, Leg leg);

  int bits_;
  int64_t group_;
  bool stochastic_;
  bool share_;
  int64_t n_passes_ = 0;
};

/// The smallest bf16 that is not below x >= 0.
torch::Tensor bf16_at_least(const torch::Tensor& x);

}  // namespace forebay::train
