#include "train/grpo/draw.h"

#include <algorithm>
#include <cmath>

namespace forebay::train {
namespace {

float log_prob(double logit, double largest, double sum) {
  return static_cast<float>(std::min(0.0, logit - largest - std::log(sum)));
}

}  // namespace

DrawnToken draw_token(std::span<const float> logits, double u, std::vector<double>& scratch) {
  const double largest = *std::ranges::max_element(logits);
  scratch.resize(logits.size());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += scratch[i] = std::exp(logits[i] - largest);
  size_t id = 0, last = 0;  // last: with any mass, where rounding leaves u above all sums
  double below = 0;
  for (; id < logits.size(); ++id) {
    below += scratch[id];
    if (scratch[id] > 0) last = id;
    if (u * sum < below) break;
  }
  if (id == logits.size()) id = last;
  return {static_cast<int32_t>(id), log_prob(logits[id], largest, sum)};
}

DrawnToken given_token(std::span<const float> logits, int32_t id) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float l : logits) sum += std::exp(l - largest);
  return {id, log_prob(logits[static_cast<size_t>(id)], largest, sum)};
}

DrawnToken likeliest_token(std::span<const float> logits) {
  const auto best = std::ranges::max_element(logits);
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l) - *best);
  return {static_cast<int32_t>(best - logits.begin()), log_prob(*best, *best, sum)};
}

}  // namespace forebay::train
