#include <cmath>

#include "sampling/sampling.h"
#include "sampling/survivors.h"

namespace forebay {

void make_distribution(std::span<const float> logits, const SamplingOptions& options,
                       SamplingScratch& scratch, Distribution& distribution) {
  distribution.ids.clear();
  distribution.probabilities.clear();
  Survivors survivors(scratch.candidates);
  survivors.select(logits, options);
  if (survivors.size() == 0) return;
  if (options.temperature == 0) {
    distribution.ids.push_back(survivors.at(0).id);
    distribution.probabilities.push_back(1);
    return;
  }
  const double inverse = 1 / static_cast<double>(options.temperature),
               total = survivors.total_weight(inverse);
  for (size_t i = 0; i < survivors.size(); ++i) {
    const Candidate& candidate = survivors.at(i);
    distribution.ids.push_back(candidate.id);
    distribution.probabilities.push_back(survivors.weigh(candidate, inverse) / total);
  }
}

Distribution make_distribution(std::span<const float> logits, const SamplingOptions& options) {
  SamplingScratch scratch;
  Distribution distribution;
  make_distribution(logits, options, scratch, distribution);
  return distribution;
}

int32_t draw(const Distribution& distribution, double u) {
  // Rounding can leave the whole sum a little below u: then the last candidate that has any mass is meant.
  int32_t chosen = -1;
  double sum = 0;
  for (size_t i = 0; i < distribution.ids.size() && (chosen < 0 || sum <= u); ++i) {
    if (distribution.probabilities[i] <= 0) break;
    sum += distribution.probabilities[i];
    chosen = distribution.ids[i];
  }
  return chosen;
}

int32_t argmax(std::span<const float> logits) {
  int32_t best = -1;
  float best_logit = -INFINITY;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > best_logit) || logits[id] == INFINITY) continue;
    best_logit = logits[id];
    best = static_cast<int32_t>(id);
  }
  return best;
}

}  // namespace forebay
