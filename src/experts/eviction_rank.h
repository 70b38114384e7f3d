/// Which expert is worth least: the policies, defined once for the live cache and for replays of a trace.
///
/// Every policy gives an expert a key that only its own use, or its own routing, changes, and only upwards:
///
///   decay      each use adds w
///   lru        the tick of the last use
///   lfu        the number of uses
///   ema        each window adds w p, p being the router's probability: a moving average of it
///   near-pick  as decay; ranks n_used + 1 to 2 n_used, the experts that were almost chosen, add w / 8
///   inverse    each window adds w / rank: ema without the router's own scale, which differs by block
///
/// with w = 2^(tick / half_life). A weight that grows is decay without touching what decays: divided by
/// today's w, a key is the sum of what was added, each half as much every half_life ticks. A tick is one
/// request, that is one block and window, so the order is a function of the token stream and of nothing else.
/// Of a window's rows the one that gives most counts, as a use counts once however many rows share it: a
/// prompt does not outweigh the tokens after it. Keys outlive residency.
///
/// The victim is the resident expert without pins of least (key, last use, id). A heap keeps (key, last use)
/// as they were when an expert was last looked at. Keys never fall, so an entry that is still right at the
/// top is the least of all; one that is not is put where it belongs now. A use costs a few stores, a victim
/// O(log n) and the experts it met that were used since.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forebay/experts.h"

#include "core/ensure.h"
#include "experts/expert_source.h"
#include "experts/route_candidates.h"
#include "experts/route_observer.h"

namespace forebay {

/// Thread-compatible. Allocates when made and not after. Ids are within the geometry it was made with.
class EvictionRank {
 public:
  /// half_life in ticks, above 0. `n_experts` is the largest number of any block.
  EvictionRank(EvictionPolicy policy, double half_life, int n_blocks, int n_experts, int n_used);

  /// The next request: one tick.
  void on_request();
  /// The request names this expert. Once per request and expert.
  void on_use(ExpertId id) {
    Expert& e = expert(id);
    e.key = policy_ == EvictionPolicy::kLru ? static_cast<double>(clock_) : e.key + use_gain_;
    e.last_use = clock_;
  }

  /// Whether on_route does anything; the other policies need not be told.
  bool uses_routes() const;
  /// A row of the window whose request comes next.
  void on_route(const RouteEvent& event);
  void on_route(int block, const RouteCandidates& row);

  /// The expert is in memory from now on, until it is taken out. Pins are counted apart from that, and an
  /// expert that has one is no victim.
  void insert(ExpertId id);
  void erase(ExpertId id) { expert(id).resident = false; }
  bool resident(ExpertId id) const { return experts_[index_of(id)].resident; }
  void pin(ExpertId id) { ++expert(id).n_pins; }
  void unpin(ExpertId id) {
    Expert& e = expert(id);
    ENSURE(e.n_pins > 0, "eviction rank: unpinned more often than pinned");
    if (--e.n_pins == 0 && !e.queued) enqueue(index_of(id));
  }

  /// The expert to evict next, which stays until it is erased; none when all are pinned.
  std::optional<ExpertId> coldest();

  /// Comparable with other experts' keys of the same tick.
  double key(ExpertId id) const { return experts_[index_of(id)].key; }

 private:
  struct Expert {
    double key = 0;
    uint64_t last_use = 0;
    uint64_t credit_tick = UINT64_MAX;  // of the window that gave
    float credit = 0;                   // this much for its routing
    uint32_t n_pins = 0;
    bool resident = false;
    bool queued = false;  // has an entry in heap_
  };
  /// What an expert was worth when its entry was made.
  struct Entry {
    double key;
    uint64_t tie;  // last use, then index

    bool operator<(const Entry& other) const { return key != other.key ? key < other.key : tie < other.tie; }
  };

  size_t index_of(ExpertId id) const { return static_cast<size_t>(id.block) * n_experts_ + id.index; }
  Expert& expert(ExpertId id) { return experts_[index_of(id)]; }
  void credit(Expert& e, float amount);
  Entry entry_of(size_t index) const;
  void enqueue(size_t index);
  void sift_down(size_t at);
  void pop();
  void set_clock(uint64_t clock);
  void rescale(int exponent);

  const EvictionPolicy policy_;
  const double half_life_;
  const size_t n_experts_;
  const int n_used_;

  std::vector<Expert> experts_;
  std::vector<Entry> heap_;  // least first
  uint64_t clock_ = 0;
  double origin_ = 0;    // log2 of what keys and weight_ were divided by so far
  double weight_ = 1;    // w
  double use_gain_ = 0;  // what a use adds to a key
  RouteRanker ranker_;
};

}  // namespace forebay
