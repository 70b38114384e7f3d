#include "train/grpo/importance.h"

#include <limits>

namespace forebay::train {
namespace {

constexpr double kMostLogRatio = 20;
constexpr double kLowestMeanWeight = 0.05;  // dividing by less multiplies noise by more than 20
constexpr double kLowestEss = 0.01;

}  // namespace

ImportanceWeights importance_weights(const torch::Tensor& old, const torch::Tensor& rollout,
                                     const torch::Tensor& mask, const ImportanceOptions& options) {
  const torch::NoGradGuard no_grad;
  ImportanceWeights result;
  ImportanceReport& r = result.report;
  const auto f64 = [](const torch::Tensor& x) { return x.to(torch::kFloat64); };
  const torch::Tensor m = f64(mask);
  const double n = m.sum().item<double>();
  const torch::Tensor difference = torch::where(mask, f64(old) - f64(rollout), torch::zeros({}, m.options()));
  const torch::Tensor log_ratio = torch::clamp(difference, -kMostLogRatio, kMostLogRatio);
  const torch::Tensor ratio = torch::exp(log_ratio);
  torch::Tensor weights = torch::clamp_max(ratio, options.truncation) * m;
  if (n > 0) {
    const auto mean = [&](const torch::Tensor& x) { return (x * m).sum().item<double>() / n; };
    r.mean_ratio = mean(ratio);
    r.mean_weight = mean(weights);
    const double squares = mean(weights * weights);
    r.ess = squares > 0 ? r.mean_weight * r.mean_weight / squares : 0;
    r.low = mean(f64(ratio < 1 / options.truncation));
    r.high = mean(f64(ratio > options.truncation));
    r.k3 = mean(torch::expm1(log_ratio) - log_ratio);
    r.chi2_token = mean(ratio * ratio) - 1;
    const torch::Tensor has_tokens = m.sum(-1) > 0;
    const torch::Tensor sequences =
        torch::exp(2 * torch::clamp(difference.sum(-1), -kMostLogRatio, kMostLogRatio))
            .masked_select(has_tokens);
    r.chi2_sequence = sequences.mean().item<double>() - 1;
    r.alarm = r.mean_ratio < 0.5 || r.mean_ratio > 2 || r.ess < kLowestEss;
    if (options.normalise) {
      r.refused = r.mean_weight < kLowestMeanWeight;
      r.normalised = !r.refused;
      if (r.normalised) weights = weights / r.mean_weight;
    }
  }
  if (n == 0)  // of nothing there is no mean that could look healthy
    for (double* const number :
         {&r.mean_ratio, &r.mean_weight, &r.ess, &r.low, &r.high, &r.k3, &r.chi2_token, &r.chi2_sequence})
      *number = std::numeric_limits<double>::quiet_NaN();
  result.weights = weights.to(torch::kFloat32);
  return result;
}

}  // namespace forebay::train
