/// Log-probabilities of the model's own logits, before any option changed them.
#include <algorithm>
#include <cmath>

#include "sampling/recent_window.h"
#include "sampling/sampling.h"
#include "sampling/survivors.h"
#include "sampling/weight.h"

namespace forebay {
namespace {

/// log sum exp over the finite logits; -inf when there are none.
double log_total(std::span<const float> logits) {
  const int32_t best = argmax(logits);
  if (best < 0) return -INFINITY;
  const double top = logits[best];
  const double total = sum_of_weights(
      logits.size(), [&](size_t id) { return std::isfinite(logits[id]) ? logits[id] - top : -INFINITY; });
  return logits[best] + std::log(total);
}

}  // namespace

double log_prob(std::span<const float> logits, int32_t id) {
  if (!in_vocabulary(id, logits) || !std::isfinite(logits[id])) return -INFINITY;
  return logits[id] - log_total(logits);
}

std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, int n) {
  std::vector<TokenLogProb> top;
  if (n <= 0) return top;
  std::vector<Candidate> candidates;
  Survivors survivors(candidates);
  survivors.take_top(logits, static_cast<size_t>(n));
  const double total = log_total(logits);
  for (size_t i = 0; i < survivors.size(); ++i) {
    const Candidate& candidate = survivors.at(i);
    top.push_back({candidate.id, static_cast<float>(candidate.logit - total)});
  }
  return top;
}

}  // namespace forebay
