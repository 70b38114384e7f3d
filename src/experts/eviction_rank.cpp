#include "experts/eviction_rank.h"

#include <algorithm>
#include <cmath>

#include "core/ensure.h"

namespace forebay {
namespace {

// Entries pack the last use above the index.
constexpr int kIndexBits = 24;
constexpr uint64_t kIndexMask = (1ull << kIndexBits) - 1;
// Weights are brought back before they leave a double's range, whose exponents end at 1023.
constexpr int kMaxExponent = 512;
constexpr float kNearPickCredit = 0.125f;

}  // namespace

EvictionRank::EvictionRank(EvictionPolicy policy, double half_life, int n_blocks, int n_experts, int n_used)
    : policy_(policy),
      half_life_(half_life),
      n_experts_(n_experts),
      n_used_(n_used),
      experts_(n_experts_ * n_blocks),
      ranker_(n_experts) {
  ENSURE(half_life > 0, "eviction rank: half-life");
  ENSURE(experts_.size() <= kIndexMask, "eviction rank: too many experts");
  heap_.reserve(experts_.size());
  set_clock(0);
}

bool EvictionRank::uses_routes() const {
  return policy_ == EvictionPolicy::kEma || policy_ == EvictionPolicy::kNearPick ||
         policy_ == EvictionPolicy::kInverse;
}

void EvictionRank::on_request() {
  set_clock(clock_ + 1);
}

void EvictionRank::set_clock(uint64_t clock) {
  clock_ = clock;
  if (policy_ == EvictionPolicy::kLru) return;
  if (policy_ == EvictionPolicy::kLfu) {
    use_gain_ = 1;
    return;
  }
  double exponent = static_cast<double>(clock_) / half_life_ - origin_;
  if (exponent >= kMaxExponent) {
    rescale(static_cast<int>(std::min(exponent, 1e6)));
    origin_ += std::floor(exponent);
    exponent -= std::floor(exponent);
  }
  weight_ = std::exp2(exponent);
  if (policy_ == EvictionPolicy::kDecay || policy_ == EvictionPolicy::kNearPick) use_gain_ = weight_;
}

/// Dividing by a power of two keeps every order but that of keys which become 0 together.
void EvictionRank::rescale(int exponent) {
  for (Expert& e : experts_) e.key = std::scalbn(e.key, -exponent);
  for (Entry& entry : heap_) entry = entry_of(entry.tie & kIndexMask);
  for (size_t at = heap_.size() / 2; at-- > 0;) sift_down(at);
}

void EvictionRank::on_route(const RouteEvent& event) {
  if (uses_routes()) on_route(event.block, ranker_.rank(event.logits_E));
}

void EvictionRank::on_route(int block, const RouteCandidates& row) {
  Expert* const experts = &experts_[index_of({block, 0})];
  const size_t n = row.ids.size();
  if (policy_ == EvictionPolicy::kEma) {
    const float top = exp_of_gap(row.log_sum);
    for (size_t r = 0; r < n; ++r) credit(experts[row.ids[r]], top * exp_of_gap(row.gaps[r]));
  } else if (policy_ == EvictionPolicy::kInverse) {
    for (size_t r = 0; r < n; ++r) credit(experts[row.ids[r]], 1.0f / static_cast<float>(r + 1));
  } else if (policy_ == EvictionPolicy::kNearPick) {
    const size_t end = std::min<size_t>(n, 2 * static_cast<size_t>(n_used_));
    for (size_t r = n_used_; r < end; ++r) credit(experts[row.ids[r]], kNearPickCredit);
  }
}

/// What the window's rows so far did not give it yet.
void EvictionRank::credit(Expert& e, float amount) {
  if (e.credit_tick != clock_) {
    e.credit_tick = clock_;
    e.credit = 0;
  }
  if (amount <= e.credit) return;
  e.key += weight_ * static_cast<double>(amount - e.credit);
  e.credit = amount;
}

void EvictionRank::insert(ExpertId id) {
  const size_t index = index_of(id);
  experts_[index].resident = true;
  enqueue(index);
}

/// An entry from before is as good as a new one: it can only say too little.
void EvictionRank::enqueue(size_t index) {
  Expert& e = experts_[index];
  if (e.queued || !e.resident || e.n_pins > 0) return;
  e.queued = true;
  heap_.push_back(entry_of(index));
  std::push_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) { return b < a; });
}

std::optional<ExpertId> EvictionRank::coldest() {
  while (!heap_.empty()) {
    const size_t index = heap_[0].tie & kIndexMask;
    const Expert& e = experts_[index];
    if (!e.resident || e.n_pins > 0) {  // comes back when it is inserted or unpinned
      pop();
      continue;
    }
    const Entry now = entry_of(index);
    if (!(heap_[0] < now))
      return ExpertId{static_cast<int32_t>(index / n_experts_), static_cast<int32_t>(index % n_experts_)};
    heap_[0] = now;
    sift_down(0);
  }
  return std::nullopt;
}

void EvictionRank::pop() {
  experts_[heap_[0].tie & kIndexMask].queued = false;
  heap_[0] = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
}

void EvictionRank::sift_down(size_t at) {
  const Entry moved = heap_[at];
  for (size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < moved)) break;
    heap_[at] = heap_[child];
  }
  heap_[at] = moved;
}

EvictionRank::Entry EvictionRank::entry_of(size_t index) const {
  return {experts_[index].key, experts_[index].last_use << kIndexBits | index};
}

}  // namespace forebay
