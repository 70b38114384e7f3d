/// Logits -> token. Pure functions: the same inputs give the same outputs on every machine; randomness comes
/// in as a number. The order of the chain is the order of the fields of SamplingOptions.
#pragma once

#include <array>
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

/// Working memory that callers keep between tokens so that a step allocates nothing. Holds no state that
/// changes a result. The overloads without it make their own.
struct SamplingScratch {
  std::vector<float> logits;          // the copy that the chain changes
  std::vector<int32_t> per_token;     // one entry per vocabulary id, all zero between calls
  std::vector<int32_t> matches;       // DRY: match length at every recent position
  std::vector<Candidate> candidates;  // what is left of the vocabulary
};

/// One function validates all options before any work. Errors name the field, the value and the range.
Result<void> validate(const SamplingOptions& options, int n_vocab);

// Each step of the chain, in place on the logits of the whole vocabulary. `recent` is oldest first. Ids
// outside the vocabulary are passed over.
void apply_logit_bias(std::span<float> logits, const SamplingOptions& options);
void apply_penalties(std::span<float> logits, std::span<const int32_t> recent,
                     const SamplingOptions& options);
void apply_penalties(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options,
                     SamplingScratch& scratch);
/// A token that would extend a repeat of the last `length` tokens to length + 1 loses
/// multiplier * base^(length - allowed_length), for the longest such length >= allowed_length. A breaker ends
/// the stretch that can match and is never penalised itself. O(recent), Z-algorithm.
/// Source: p-e-w, "DRY: A modern repetition penalty", text-generation-webui pull request 5677.
void apply_dry(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options);
void apply_dry(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options,
               SamplingScratch& scratch);

/// The candidates that survive top-k, typical, top-p, min-p, with their probabilities after temperature
/// (sum 1, largest first, ties by lowest id). Non-finite logits never survive. Empty when nothing is finite;
/// one candidate when temperature is 0. Each filter looks at the softmax of what the one before it left:
///   top-k    the k largest
///   typical  the smallest set of mass typical_p, nearest -log p to the entropy first (ties: larger p)
///            (Meister et al. 2023, arXiv:2202.00666)
///   top-p    the smallest set of mass top_p, largest p first (Holtzman et al. 2020, arXiv:1904.09751)
///   min-p    p >= min_p * p_max (Nguyen et al. 2024, arXiv:2407.01082)
struct Distribution {
  std::vector<int32_t> ids;
  std::vector<double> probabilities;
};
Distribution make_distribution(std::span<const float> logits, const SamplingOptions& options);
void make_distribution(std::span<const float> logits, const SamplingOptions& options,
                       SamplingScratch& scratch, Distribution& distribution);

/// The candidate at cumulative mass u in [0, 1); -1 when the distribution is empty.
int32_t draw(const Distribution& distribution, double u);

/// argmax, lowest id on ties; -1 when nothing is finite.
int32_t argmax(std::span<const float> logits);

/// log softmax of the unmodified logits at `id`, f64 accumulation. Non-finite logits have no mass: -inf.
double log_prob(std::span<const float> logits, int32_t id);

/// u for the n-th token of a stream: counter-based, so that a position's draw does not depend on how many
/// draws were made before it. The upper 53 bits of the first two words of Philox4x32-10 with the seed as key
/// and (position, stream) as counter, each low word first, times 2^-53.
double uniform(uint64_t seed, uint64_t stream, uint64_t position);

/// Ten rounds of Philox4x32. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

struct TokenLogProb {
  int32_t id;
  float log_prob;
};
/// The n most likely tokens of the unmodified logits, largest first, ties by lowest id.
std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, int n);

/// The whole chain on a copy in `scratch` (resized to the vocabulary). `position` counts generated tokens;
/// the draw is uniform(options.seed, 0, position). Equals draw() from make_distribution().
/// Errors: kCorrupt when no logit is finite.
Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> recent,
                       const SamplingOptions& options, uint64_t position, std::vector<float>& scratch);
Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> recent,
                       const SamplingOptions& options, uint64_t position, SamplingScratch& scratch);

}  // namespace forebay
