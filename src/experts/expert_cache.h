/// Experts in memory under a byte budget, read from the store when missed.
///
/// Invariants (mutex_ held):
///  1. The bytes of all slots never exceed the budget, not for one moment: room is made before it is taken.
///  2. A slot that is pinned, or that a read is filling, is neither freed nor reused.
///  3. What is resident changes speed only: a slot's bytes are those of the file.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "forebay/experts.h"

#include "core/memory_budget.h"
#include "experts/expert_source.h"
#include "experts/expert_store.h"
#include "experts/read_pool.h"
#include "tensor/buffer.h"

namespace forebay {

struct ExpertCacheOptions {
  // Changes speed.
  uint64_t budget_bytes = 0;  // of all slots; at least one token's demand
  EvictionPolicy policy = EvictionPolicy::kDecay;
  int n_readers = 8;        // reads in flight at most; a drive wants several
  double half_life = 2000;  // requests (one per block and window)
};

/// Thread-safe, but one lease at a time: a request may need the room that another lease pins.
class ExpertCache : public ExpertSource {
 public:
  /// `n_used` experts per token must fit: errors name the budget and the least that works.
  static Result<std::unique_ptr<ExpertCache>> create(ExpertStore store, int n_used,
                                                     const ExpertCacheOptions& options, MemoryBudget& budget);
  ~ExpertCache() override;

  Result<ExpertLease> request(int block, std::span<const int32_t> experts) override;
  int64_t max_experts(int block) const override;

  /// Evicts down to a smaller budget at once; a larger one is used as experts are missed. Same errors as
  /// create.
  Result<void> resize(uint64_t budget_bytes);
  ExpertCacheStats stats() const;
  const ExpertStore& store() const { return store_; }

 private:
  class Lease;
  struct Slot;

  ExpertCache(ExpertStore store, int n_used, const ExpertCacheOptions& options, MemoryBudget& budget);
  Result<void> check_budget(uint64_t budget_bytes) const;
  Result<void> make_room(uint64_t bytes, std::unique_lock<std::mutex>& lock);
  Slot* find_victim();
  void touch(Slot& slot);
  void read(Slot& slot);
  void unpin(std::span<Slot* const> slots);

  const ExpertStore store_;
  const int n_used_;
  ExpertCacheOptions options_;
  MemoryBudget& budget_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a read ended
  std::map<ExpertId, std::unique_ptr<Slot>> slots_;
  uint64_t clock_ = 0;
  ExpertCacheStats stats_;
  ReadPool readers_;  // last: its reads end before what they touch goes
};

}  // namespace forebay
