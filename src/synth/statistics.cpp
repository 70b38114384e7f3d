#include "synth/statistics.h"

#include <algorithm>
#include <cmath>

namespace forebay::synth {
namespace {

using convert::Family;

constexpr double kConstantShare = 0.5;  // of the embedding
constexpr double kExperts = 0.3;        // square mean of all that the experts write
constexpr double kRouterDeviation = 2;  // of a router's logits: about as sharp as trained ones
// Of the head's logits. The likeliest of 248,320 tokens then has a few per cent.
constexpr double kHeadDeviation = 4;
// Early blocks write more, so that the slow part is there for most routers.
constexpr uint64_t kEarlyBlocks = 4;

}  // namespace

Statistics::Statistics(const convert::CheckpointConfig& config, const RoutingStatistics& routing)
    : routing_(routing),
      n_blocks_(config.n_blocks),
      d_model_(config.d_model),
      has_shared_expert_(config.experts.shared_width > 0),
      // A read of hyper-connections halves its input: the mean of gates around a half.
      input_rms_(config.family == Family::kQwen4Exp ? 0.5 : 1.0) {
  experts_ = kExperts;
  const double fast = 1 - kConstantShare + experts_;
  mixers_ = fast * routing.locality / (1 - routing.locality);
}

Normal Statistics::embedding() const {
  return {.mean = std::sqrt(kConstantShare), .deviation = std::sqrt(1 - kConstantShare)};
}

Normal Statistics::output_head() const {
  return read(kHeadDeviation);
}

Normal Statistics::read(double gain) const {
  return {.mean = 0, .deviation = gain / (input_rms_ * std::sqrt(static_cast<double>(d_model_)))};
}

double Statistics::mixer_share(uint64_t block) const {
  const auto n = static_cast<double>(n_blocks_);
  const auto n_early = static_cast<double>(std::min(kEarlyBlocks, n_blocks_));
  return mixers_ * (0.5 / n + (block < kEarlyBlocks ? 0.5 / n_early : 0));
}

double Statistics::expert_share() const {
  return experts_ / static_cast<double>(n_blocks_);
}

double Statistics::constant_share(uint64_t block, bool after_mixer) const {
  double residual = 1;
  for (uint64_t i = 0; i < block; ++i) residual += mixer_share(i) + expert_share();
  if (after_mixer) residual += mixer_share(block);
  return kConstantShare / residual;
}

Normal Statistics::biased_read(uint64_t block, double bias, double gain) const {
  Normal weights = read(gain);
  // The input's mean over all dimensions is input_rms * sqrt(constant share).
  weights.mean =
      bias / (input_rms_ * std::sqrt(constant_share(block, false)) * static_cast<double>(d_model_));
  return weights;
}

Normal Statistics::mixer_output(uint64_t block, uint64_t width, double rms) const {
  return {.mean = 0, .deviation = std::sqrt(mixer_share(block) / static_cast<double>(width)) / rms};
}

Normal Statistics::expert_output(uint64_t width) const {
  // silu(gate) * up of unit normal numbers has square mean 0.36; ten experts' weights have a square sum of
  // about 0.2, and the shared expert's gate is about a half.
  constexpr double kHidden = 0.6;
  const double mixed = has_shared_expert_ ? std::sqrt(0.2 + 0.25) : std::sqrt(0.2);
  return {.mean = 0, .deviation = std::sqrt(expert_share() / static_cast<double>(width)) / (kHidden * mixed)};
}

void Statistics::router_row(uint64_t block, Key key, uint64_t expert, std::span<float> out) const {
  const double constant = constant_share(block, true);
  const double varying = kRouterDeviation / std::sqrt(1 + routing_.skew * routing_.skew);
  const auto n = static_cast<double>(out.size());
  const double deviation = varying / (input_rms_ * std::sqrt((1 - constant) * n));
  const double popularity = key.named("popularity").normal(expert) * routing_.skew * varying;
  const double bias = popularity / (input_rms_ * std::sqrt(constant) * n);
  const Key of_row = key.numbered(expert);
  // The random direction is at right angles to the constant one: what it saw of that would be popularity too.
  double mean = 0;
  for (size_t i = 0; i < out.size(); ++i) mean += of_row.normal(i) / n;
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(bias + deviation * (of_row.normal(i) - mean));
}

}  // namespace forebay::synth
