#include "train/wire/quantizer.h"

#include "train/wire/prf.h"
#include "train/wire/prf_tensor.h"
#include "train/wire/quantize_rows.h"

namespace forebay::train {
namespace {

/// 1 / s is far from what f32 cannot hold.
constexpr double kSmallestScale = 0x1p-100;
/// Coordinates that are worth a thread.
constexpr int64_t kGrain = 65536;

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

uint64_t Quantizer::noise_stream(const WireKey& key, Leg leg) {
  const uint64_t stream =
      prf_stream(PrfUse::kNoise, {key.seed, static_cast<uint64_t>(key.step),
                                  static_cast<uint64_t>(key.boundary), static_cast<uint64_t>(leg)});
  return share_ ? stream : prf_absorb(stream, static_cast<uint64_t>(n_passes_++));
}

Quantizer::Coded Quantizer::quantize(const torch::Tensor& x_NW, const WireKey& key, Leg leg) {
  if (!x_NW.is_cpu()) return quantize_with_tensors(x_NW, key, leg);
  const int64_t n_rows = x_NW.size(0), width = x_NW.size(1);
  Coded coded{torch::empty({n_rows, width}, torch::kUInt8),
              torch::empty({n_rows, n_groups(width)}, torch::kBFloat16)};
  const float* const x = x_NW.data_ptr<float>();
  uint8_t* const codes = coded.codes_NW.data_ptr<uint8_t>();
  auto* const scales = static_cast<uint16_t*>(coded.scales_NG.data_ptr());
  const std::optional<uint64_t> stream = stochastic_ ? std::optional(noise_stream(key, leg)) : std::nullopt;
  at::parallel_for(0, n_rows, 1 + kGrain / (width + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::optional<uint64_t> noise;
      if (stream) noise = prf_at(*stream, static_cast<uint64_t>(key.first_row + i));
      quantize_row(x + i * width, width, {bits_, group_}, noise, codes + i * width,
                   scales + i * n_groups(width));
    }
  });
  return coded;
}

torch::Tensor Quantizer::dequantize(const Coded& coded) const {
  if (!coded.codes_NW.is_cpu()) return dequantize_with_tensors(coded);
  const int64_t n_rows = coded.codes_NW.size(0), width = coded.codes_NW.size(1);
  torch::Tensor x_NW = torch::empty({n_rows, width}, torch::kFloat);
  const torch::Tensor codes_NW = coded.codes_NW.contiguous(), scales_NG = coded.scales_NG.contiguous();
  const uint8_t* const codes = codes_NW.data_ptr<uint8_t>();
  const auto* const scales = static_cast<const uint16_t*>(scales_NG.data_ptr());
  float* const x = x_NW.data_ptr<float>();
  at::parallel_for(0, n_rows, 1 + kGrain / (width + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      dequantize_row(codes + i * width, scales + i * n_groups(width), width, {bits_, group_}, x + i * width);
  });
  return x_NW;
}

Quantizer::Coded Quantizer::quantize_with_tensors(const torch::Tensor& x_NW, const WireKey& key, Leg leg) {
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
    const torch::Tensor noise_NW =
        prf_uniform_rows(noise_stream(key, leg), key.first_row, x_NW.size(0), x_NW.size(1), x_NW.device());
    z = (noise_NW < z.sub_(below)).to(torch::kFloat).add_(below);
  } else {
    z.round_();
  }
  // Only a rounding error of z takes it past the ends.
  return {z.clamp_(0, top).to(torch::kUInt8), scales_NG};
}

torch::Tensor Quantizer::dequantize_with_tensors(const Coded& coded) const {
  const float top = static_cast<float>((1 << bits_) - 1);
  const torch::Tensor s_NG1 = coded.scales_NG.to(torch::kFloat).unsqueeze(2);
  const torch::Tensor q_NGC = grouped(coded.codes_NW.to(torch::kFloat), group_);
  return ungrouped((q_NGC * (2 * s_NG1 / top)).sub_(s_NG1), coded.codes_NW.size(1));
}

}  // namespace forebay::train
