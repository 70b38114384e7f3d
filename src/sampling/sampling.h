/// Logits -> token. Pure functions: the same inputs give the same outputs on every machine; randomness comes
/// in as a number. The order of the chain is the order of the fields of SamplingOptions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "forebay/result.h"
#include "forebay/sampling.h"

namespace forebay {

struct Candidate {
  int32_t id;
  float logit;
};

/// One function validates all options before any work. Errors name the field, the value and the range.
Result<void> validate(const SamplingOptions& options, int n_vocab);

// Each step of the chain, in place on the logits of the whole vocabulary. `recent` is oldest first.
void apply_logit_bias(std::span<float> logits, const SamplingOptions& options);
void apply_penalties(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options);
void apply_dry(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options);

/// The candidates that survive top-k, typical, top-p, min-p, with their probabilities after temperature
/// (sum 1, largest first, ties by lowest id). Non-finite logits never survive.
struct Distribution {
  std::vector<int32_t> ids;
  std::vector<double> probabilities;
};
Distribution make_distribution(std::span<const float> logits, const SamplingOptions& options);

/// The candidate at cumulative mass u in [0, 1).
int32_t draw(const Distribution& distribution, double u);

/// argmax, lowest id on ties; -1 when nothing is finite.
int32_t argmax(std::span<const float> logits);

/// log softmax of the unmodified logits at `id`, f64 accumulation.
double log_prob(std::span<const float> logits, int32_t id);

/// u for the n-th token of a stream: counter-based, so that a position's draw does not depend on how many
/// draws were made before it.
double uniform(uint64_t seed, uint64_t stream, uint64_t position);

struct TokenLogProb {
  int32_t id;
  float log_prob;
};
/// The n most likely tokens of the unmodified logits, largest first.
std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, int n);

/// The whole chain on a copy in `scratch` (resized to the vocabulary). `position` counts generated tokens.
/// Errors: kCorrupt when no logit is finite.
Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> recent, const SamplingOptions& options,
                       uint64_t position, std::vector<float>& scratch);

}  // namespace forebay
