#include "train/wire/quantizer.h"

#include "train/wire/prf.h"
#include "train/wire/prf_tensor.h"

namespace forebay::train {
namespace {

/// 1 / s is far from what f32 cannot hold.
constexpr double kSmallestScale = 0x1p-100;

/// [N, W] -> [N, G, group], zeros behind the last coordinate.
torch::Tensor grouped(const torch::Tensor& x_NW, int64_t group) {
  const int64_t padding = (group - x_NW.size(1) % group) % group;
  const torch::Tensor padded = padding == 0 ? x_NW : torch::constant_pad_nd(x_NW, {0, padding});
  return padded.reshape({x_NW.size(0), padded.size(1) / group, group});
}

torch::Tensor ungrouped(const torch::Tensor& x_NGC, int64_t width) {
  const torch::Tensor flat = x_NGC.reshape({x_NGC.size(0), x_NGC.size(1) * x_NGC.size(2)});
  return flat.size(1) == width ? flat : flat.slice(1, 0, width).contiguous();
}

}  // namespace

torch::Tensor bf16_at_least(const torch::Tensor& x) {
  // bf16 is the upper half of f32: a carry out of the lower half is the next one up.
  const torch::Tensor up = (x.view(torch::kInt) + 0xffff).bitwise_and_(~0xffff).view(torch::kFloat);
  return torch::where(x.isfinite(), up, x).to(torch::kBFloat16);
}

Quantizer::Quantizer(const CodecOptions& options, bool stochastic)
    : bits_(options.bits), group_(options.group), stochastic_(stochastic), share_(options.share) {}

double Quantizer::row_bits(int64_t width) const {
  return static_cast<double>(width) * (bits_ + 16.0 / static_cast<double>(group_));
}

torch::Tensor Quantizer::noise(const torch::Tensor& like_NW, const WireKey& key, Leg leg) {
  uint64_t stream =
      prf_stream(PrfUse::kNoise, {key.seed, static_cast<uint64_t>(key.step),
                                  static_cast<uint64_t>(key.boundary), static_cast<uint64_t>(leg)});
  if (!share_) stream = prf_absorb(stream, static_cast<uint64_t>(n_passes_++));
  return prf_uniform_rows(stream, key.first_row, like_NW.size(0), like_NW.size(1), like_NW.device());
}

Quantizer::Coded Quantizer::quantize(const torch::Tensor& x_NW, const WireKey& key, Leg leg) {
  const float top = static_cast<float>((1 << bits_) - 1);
  const torch::Tensor x_NGC = grouped(x_NW, group_);
  torch::Tensor scales_NG = bf16_at_least(x_NGC.abs().amax(2));
  // What is so small counts as zero; a scale that is not a number stays one.
  scales_NG.masked_fill_(scales_NG < kSmallestScale, 0);
  const torch::Tensor s_NG1 = scales_NG.to(torch::kFloat).unsqueeze(2);
  // A group of zeros has s = 0 and z = 0: it comes back as 0 D - 0.
  const torch::Tensor per_level = (top / (2 * s_NG1)).masked_fill_(s_NG1 == 0, 0);
  torch::Tensor z = ungrouped((x_NGC + s_NG1).mul_(per_level), x_NW.size(1));
  if (stochastic_) {
    const torch::Tensor below = z.floor();
    z = (noise(x_NW, key, leg) < z.sub_(below)).to(torch::kFloat).add_(below);
  } else {
    z.round_();
  }
  // Only a rounding error of z takes it past the ends.
  return {z.clamp_(0, top).to(torch::kUInt8), scales_NG};
}

torch::Tensor Quantizer::dequantize(const Coded& coded) const {
  const float top = static_cast<float>((1 << bits_) - 1);
  const torch::Tensor s_NG1 = coded.scales_NG.to(torch::kFloat).unsqueeze(2);
  const torch::Tensor q_NGC = grouped(coded.codes_NW.to(torch::kFloat), group_);
  return ungrouped((q_NGC * (2 * s_NG1 / top)).sub_(s_NG1), coded.codes_NW.size(1));
}

}  // namespace forebay::train
