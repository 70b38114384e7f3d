#include "train/wire/self_test.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "train/wire/prf.h"

namespace forebay::train {
namespace {

constexpr int64_t kDraws = 200;
constexpr int64_t kRows = 4;
constexpr double kStandardErrors = 5;
// Numbers travel as bf16: relative errors up to 2^-9, 3e-6 in energy. Rounding to 8 bits is biased by 3e-5.
constexpr double kCarrierEnergy = 5e-6;
constexpr double kCarrierSlope = 1e-4;

/// kRows Gaussian rows and, last, one of +-1; all exact in bf16.
torch::Tensor test_rows(int64_t width) {
  torch::Tensor rows = torch::empty({kRows + 1, width}, torch::kFloat);
  auto to = rows.accessor<float, 2>();
  for (int64_t i = 0; i <= kRows; ++i) {
    const uint64_t stream = prf_stream(PrfUse::kTest, {static_cast<uint64_t>(i)});
    for (int64_t j = 0; j < width; ++j) {
      const double normal = prf_normal(stream, j);
      to[i][j] = static_cast<float>(i < kRows ? normal : std::copysign(1.0, normal));
    }
  }
  return rows.to(torch::kBFloat16).to(torch::kFloat);
}

Result<void> check_bytes(Codec& codec, const torch::Tensor& x_NW) {
  const WireKey key{.seed = 1, .step = 1};
  const int64_t n = x_NW.size(0);
  const int64_t width = x_NW.size(1);
  // Passes with noise of their own (a control) cannot be compared with each other.
  const std::map<std::string, torch::Tensor> before = codec.state();
  const torch::Tensor viewed = codec.view(x_NW, key, nullptr);
  TRY(codec.restore(before));
  const Payload payload = codec.encode(x_NW, key, nullptr);
  const torch::Tensor decoded = TRY(codec.decode(payload, n, width, key, nullptr));
  if (!torch::equal(viewed, decoded.to(viewed.device())))
    return Error{Code::kInternal,
                 fmt::format("codec {}: decoded rows are not those of its view", codec.name())};
  const size_t declared = codec.payload_bytes(n, width, Leg::kForward);
  if (payload.bytes.size() != declared || static_cast<double>(declared) * 8 < payload.logical_bits)
    return Error{Code::kInternal,
                 fmt::format("codec {}: {} bytes for {} rows, declared are {} and {} logical bits",
                             codec.name(), payload.bytes.size(), n, declared, payload.logical_bits)};
  return {};
}

}  // namespace

bool BiasMeasure::unbiased() const {
  // Not a number is not unbiased.
  return bias_energy <= bias_limit && std::abs(flat_slope - 1) <= flat_limit;
}

BiasMeasure measure_bias(Codec& codec, int64_t width, int64_t n_draws) {
  const torch::Tensor x = test_rows(width);
  const torch::Tensor x64 = x.to(torch::kDouble);
  torch::Tensor sum = torch::zeros_like(x64);
  torch::Tensor squares = torch::zeros_like(x64);
  double slopes = 0;
  double slope_squares = 0;
  for (int64_t draw = 0; draw < n_draws; ++draw) {
    const torch::Tensor seen = codec.view(x, {.seed = 0x5e1f, .step = draw}, nullptr).to(torch::kDouble);
    const torch::Tensor error = seen - x64;  // centred, so that small variances survive the subtraction
    sum += error;
    squares += error * error;
    const double slope = (error[kRows] * x64[kRows]).mean().item<double>();
    slopes += slope;
    slope_squares += slope * slope;
  }
  const double n = static_cast<double>(n_draws);
  const torch::Tensor mean = sum / n;
  // The variance of the mean, per coordinate.
  const torch::Tensor variance = (squares - sum * mean).clamp_min(0) / ((n - 1) * n);
  const torch::Tensor row_energy = (x64 * x64).sum(1);
  const torch::Tensor bias = ((mean * mean - variance).sum(1) / row_energy).slice(0, 0, kRows);
  // Each (mean_j^2 - variance_j) has a standard error of sqrt(2) variance_j; coordinates are independent,
  // rows (which may share a mask) are not.
  const torch::Tensor row_error = ((2 * variance * variance).sum(1).sqrt() / row_energy).slice(0, 0, kRows);

  BiasMeasure measure{.n_draws = n_draws};
  measure.bias_energy = bias.mean().item<double>();
  measure.bias_limit = kStandardErrors * row_error.mean().item<double>() + kCarrierEnergy;
  const double slope = slopes / n;
  const double slope_variance = std::max(0.0, slope_squares - slopes * slope) / ((n - 1) * n);
  measure.flat_slope = 1 + slope;
  measure.flat_limit = kStandardErrors * std::sqrt(slope_variance) + kCarrierSlope;
  return measure;
}

Result<void> self_test(Codec& codec, int64_t width) {
  TRY(check_bytes(codec, test_rows(width)));
  const BiasMeasure measure = measure_bias(codec, width, kDraws);
  const bool declared_unbiased = codec.bias() == Bias::kUnbiased;
  if (measure.unbiased() == declared_unbiased) return {};
  return Error{
      Code::kInvalidArgument,
      fmt::format("codec {}: declared {}, but the mean of {} draws has a bias energy of {:.3g} (noise "
                  "explains {:.3g}) and a slope of {:.5f} on equal magnitudes (1 within {:.3g})",
                  codec.name(), declared_unbiased ? "unbiased" : "biased", measure.n_draws,
                  measure.bias_energy, measure.bias_limit, measure.flat_slope, measure.flat_limit)};
}

}  // namespace forebay::train
