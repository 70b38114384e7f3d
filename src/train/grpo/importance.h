/// Token importance weights between the sampler and the training view, and what can be said about how far the
/// two are apart. Source: the definitions of verl's rollout correction, taken over token by token.
#pragma once

#include <string>

#include <torch/torch.h>

namespace forebay::train {

struct ImportanceOptions {
  bool weigh = false;      // else the report is made and the weights are not used
  double truncation = 2;   // C
  bool normalise = false;  // divide by the batch's mean weight, after truncation
};

struct ImportanceReport {
  double mean_ratio = 1;     // of rho = pi_old / pi_roll; its expectation under the sampler is 1
  double mean_weight = 1;    // of min(rho, C), before normalisation
  double ess = 1;            // 1 / mean((w / mean w)^2): a fraction of the tokens, in (0, 1]
  double low = 0;            // share of rho below 1 / C
  double high = 0;           // share of rho above C, before truncation
  double k3 = 0;             // mean(rho - 1 - log rho)
  double chi2_token = 0;     // mean(rho^2) - 1
  double chi2_sequence = 0;  // the same of products over a sequence
  bool normalised = false;
  bool refused = false;  // normalisation was asked for, and the mean weight was below 0.05
  bool alarm = false;    // mean_ratio outside [0.5, 2], or ess below 0.01
};

struct ImportanceWeights {
  torch::Tensor weights;  // [B, T] f32, detached, 0 off the mask
  ImportanceReport report;
};

/// w = min(exp(clamp(old - rollout, +-20)), C). All tokens of the step at once: [B, T], mask bool. An empty
/// mask gives the report's defaults.
ImportanceWeights importance_weights(const torch::Tensor& old, const torch::Tensor& rollout,
                                     const torch::Tensor& mask, const ImportanceOptions& options);

}  // namespace forebay::train
