/// What the filters leave of a vocabulary. Selection never sorts more than it has to: a vocabulary has a
/// quarter of a million entries and a draw looks at a few dozen.
#pragma once

#include <span>
#include <vector>

#include "sampling/sampling.h"
#include "sampling/weight.h"

namespace forebay {

/// Larger logit first, ties by lowest id: a total order, so that no result depends on how a library sorts.
inline bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Candidates in a caller's vector, of which the first n_sorted are the n_sorted likeliest, in order; the
/// others follow in no order.
class Survivors {
 public:
  explicit Survivors(std::vector<Candidate>& candidates) : candidates_(candidates) {}

  void take_all(std::span<const float> logits);
  void take_top(std::span<const float> logits, size_t k);
  /// take_*, then the filters that are on.
  void select(std::span<const float> logits, const SamplingOptions& options);

  size_t size() const { return candidates_.size(); }
  /// The i-th likeliest; sorts as far as needed.
  const Candidate& at(size_t i);
  /// exp((logit - best) * inverse_temperature): 1 for the largest logit.
  double weigh(const Candidate& candidate, double inverse_temperature = 1) const {
    return weight((static_cast<double>(candidate.logit) - best_) * inverse_temperature);
  }
  /// Sum of the weights. Call it before at(), which moves candidates: the order of a sum shows in its bits.
  double total_weight(double inverse_temperature = 1) const;

 private:
  void keep_typical(double mass);
  void keep_top_mass(double mass);
  void keep_min_p(double fraction);
  void find_best();

  std::vector<Candidate>& candidates_;
  size_t n_sorted_ = 0;
  float best_ = 0;  // the largest logit
};

}  // namespace forebay
