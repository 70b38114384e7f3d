#include "sampling/survivors.h"

#include <algorithm>
#include <cmath>

namespace forebay {
namespace {

constexpr size_t kFirstChunk = 128;

/// Puts the next candidates in `before` order behind the n_sorted that are there already, in chunks that
/// grow fourfold: a long tail costs no more than a full sort, a short head almost nothing.
template <typename Order>
size_t sort_further(std::vector<Candidate>& candidates, size_t n_sorted, Order before) {
  const size_t end = std::min(candidates.size(), std::max(kFirstChunk, n_sorted * 4));
  const auto first = candidates.begin() + n_sorted, last = candidates.begin() + end;
  // A heap of the few best looks at each of the many others once; for larger chunks selection is cheaper.
  if (candidates.size() / 32 > end) {
    std::partial_sort(first, last, candidates.end(), before);
  } else {
    if (last != candidates.end()) std::nth_element(first, last, candidates.end(), before);
    std::sort(first, last, before);
  }
  return end;
}

}  // namespace

void Survivors::find_best() {
  // Four at a time: one would wait for the other.
  float best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  for (size_t i = 0; i < candidates_.size(); ++i) best[i % 4] = std::max(best[i % 4], candidates_[i].logit);
  best_ = std::max(std::max(best[0], best[1]), std::max(best[2], best[3]));
}

void Survivors::take_all(std::span<const float> logits) {
  candidates_.resize(logits.size());
  size_t n = 0;
  for (size_t id = 0; id < logits.size(); ++id) {  // without a branch
    candidates_[n] = {static_cast<int32_t>(id), logits[id]};
    n += static_cast<size_t>(std::isfinite(logits[id]));
  }
  candidates_.resize(n);
  n_sorted_ = 0;
  find_best();
}

void Survivors::take_top(std::span<const float> logits, size_t k) {
  // A buffer of up to 2k is cut back to its k best whenever it is full. What is kept raises the bar for the
  // rest; a later equal has a higher id and loses.
  k = std::min(k, logits.size());
  candidates_.clear();
  float bar = -INFINITY;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > bar) || logits[id] == INFINITY) continue;
    candidates_.push_back({static_cast<int32_t>(id), logits[id]});
    if (candidates_.size() < 2 * k) continue;
    std::nth_element(candidates_.begin(), candidates_.begin() + (k - 1), candidates_.end(), likelier);
    candidates_.resize(k);
    bar = candidates_[k - 1].logit;
  }
  std::sort(candidates_.begin(), candidates_.end(), likelier);
  candidates_.resize(std::min(candidates_.size(), k));
  n_sorted_ = candidates_.size();
  find_best();
}

const Candidate& Survivors::at(size_t i) {
  while (i >= n_sorted_) n_sorted_ = sort_further(candidates_, n_sorted_, likelier);
  return candidates_[i];
}

double Survivors::total_weight(double inverse_temperature) const {
  return sum_of_weights(candidates_.size(), [&](size_t i) {
    return (static_cast<double>(candidates_[i].logit) - best_) * inverse_temperature;
  });
}

void Survivors::keep_typical(double mass) {
  // -log p - entropy = mean - logit, where mean = sum p * logit: the distance needs no logarithm.
  double total = 0, mean = 0;
  for (const Candidate& candidate : candidates_) {
    const double w = weigh(candidate);
    total += w;
    mean += w * (static_cast<double>(candidate.logit) - best_);
  }
  mean /= total;
  const auto distance = [&](const Candidate& c) {
    return std::abs(static_cast<double>(c.logit) - best_ - mean);
  };
  const auto more_typical = [&](const Candidate& a, const Candidate& b) {
    const double distance_a = distance(a), distance_b = distance(b);
    return distance_a != distance_b ? distance_a < distance_b : likelier(a, b);
  };
  size_t n_kept = 0, n_sorted = 0;
  for (double sum = 0; n_kept < candidates_.size() && sum < mass * total; ++n_kept) {
    if (n_kept == n_sorted) n_sorted = sort_further(candidates_, n_sorted, more_typical);
    sum += weigh(candidates_[n_kept]);
  }
  candidates_.resize(n_kept);
  std::sort(candidates_.begin(), candidates_.end(), likelier);
  n_sorted_ = n_kept;
  find_best();
}

void Survivors::keep_top_mass(double mass) {
  const double wanted = mass * total_weight();
  size_t n_kept = 0;
  double sum = 0;
  do {
    sum += weigh(at(n_kept));
    ++n_kept;
  } while (n_kept < candidates_.size() && sum < wanted);
  candidates_.resize(n_kept);
  n_sorted_ = n_kept;
}

void Survivors::keep_min_p(double fraction) {
  // The logarithm only spares exponentials of candidates that are clearly out.
  const double clearly_out = std::log(fraction) - 1e-6;
  const auto is_out = [&](const Candidate& candidate) {
    return static_cast<double>(candidate.logit) - best_ < clearly_out || weigh(candidate) < fraction;
  };
  std::erase_if(candidates_, is_out);
  // Those that go are the least likely: the sorted ones that stay are still in front.
  n_sorted_ = std::min(n_sorted_, candidates_.size());
}

void Survivors::select(std::span<const float> logits, const SamplingOptions& options) {
  if (options.top_k > 0)
    take_top(logits, static_cast<size_t>(options.top_k));
  else
    take_all(logits);
  if (candidates_.empty()) return;
  if (options.typical_p < 1) keep_typical(options.typical_p);
  if (options.top_p < 1) keep_top_mass(options.top_p);
  if (options.min_p > 0) keep_min_p(options.min_p);
}

}  // namespace forebay
