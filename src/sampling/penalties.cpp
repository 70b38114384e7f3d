/// Logit bias and the penalties that count how often a token was seen.
#include "sampling/recent_window.h"
#include "sampling/sampling.h"

namespace forebay {

void apply_logit_bias(std::span<float> logits, const SamplingOptions& options) {
  for (const auto& [id, bias] : options.logit_bias)
    if (in_vocabulary(id, logits)) logits[id] += bias;
}

void apply_penalties(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options,
                     SamplingScratch& scratch) {
  if (options.repeat_penalty == 1.0f && options.presence_penalty == 0.0f && options.frequency_penalty == 0.0f)
    return;
  const auto window = recent_window(recent, options.penalty_last_n);
  std::vector<int32_t>& counts = scratch.per_token;
  counts.resize(logits.size());
  for (const int32_t id : window)
    if (in_vocabulary(id, logits)) ++counts[id];

  for (const int32_t id : window) {
    if (!in_vocabulary(id, logits) || counts[id] == 0) continue;
    float& logit = logits[id];
    logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
    logit -= options.presence_penalty + options.frequency_penalty * static_cast<float>(counts[id]);
    counts[id] = 0;  // each token once, and the counts are clean for the next call
  }
}

void apply_penalties(std::span<float> logits, std::span<const int32_t> recent,
                     const SamplingOptions& options) {
  SamplingScratch scratch;
  apply_penalties(logits, recent, options, scratch);
}

}  // namespace forebay
