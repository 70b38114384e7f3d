/// The whole chain, from a model's logits to one token.
#include <fmt/format.h>

#include "sampling/sampling.h"
#include "sampling/survivors.h"

namespace forebay {
namespace {

Error nothing_to_sample(size_t n_vocab) {
  return Error{Code::kCorrupt, fmt::format("none of {} logits is finite, wanted at least one", n_vocab)};
}

/// draw(make_distribution(...), u) without sorting the candidates behind the one that is drawn.
int32_t draw_lazily(std::span<const float> logits, const SamplingOptions& options, double u,
                    SamplingScratch& scratch) {
  Survivors survivors(scratch.candidates);
  survivors.select(logits, options);
  if (survivors.size() == 0) return -1;
  if (options.temperature == 0) return survivors.at(0).id;
  const double inverse = 1 / static_cast<double>(options.temperature),
               total = survivors.total_weight(inverse);
  int32_t chosen = survivors.at(0).id;
  double sum = 0;
  for (size_t i = 0; i < survivors.size() && sum <= u; ++i) {
    const Candidate& candidate = survivors.at(i);
    const double p = survivors.weigh(candidate, inverse) / total;
    if (p <= 0) break;
    sum += p;
    chosen = candidate.id;
  }
  return chosen;
}

}  // namespace

Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> recent,
                       const SamplingOptions& options, uint64_t position, SamplingScratch& scratch) {
  scratch.logits.assign(logits.begin(), logits.end());
  apply_logit_bias(scratch.logits, options);
  apply_penalties(scratch.logits, recent, options, scratch);
  apply_dry(scratch.logits, recent, options, scratch);

  // Of the filters only typical can drop the best candidate.
  const bool greedy = options.temperature == 0 && options.typical_p >= 1;
  const int32_t id = greedy
                         ? argmax(scratch.logits)
                         : draw_lazily(scratch.logits, options, uniform(options.seed, 0, position), scratch);
  if (id < 0) return nothing_to_sample(logits.size());
  return id;
}

Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> recent,
                       const SamplingOptions& options, uint64_t position, std::vector<float>& scratch) {
  SamplingScratch all;
  all.logits.swap(scratch);
  Result<int32_t> id = sample(logits, recent, options, position, all);
  all.logits.swap(scratch);
  return id;
}

}  // namespace forebay
