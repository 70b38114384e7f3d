/// Experts in memory under a byte budget, read from the store when missed.
///
/// Invariants:
///  1. The bytes of all slots never exceed the budget, not for one moment: room is made before it is taken.
///  2. A slot that is pinned, or that a read is filling, is neither freed nor reused.
///  3. What is resident changes speed only: a slot's bytes are those of the file.
///  4. What is in the arena is a function of the requests alone, never of when a read ends.
///
/// The arena holds what was asked for. Beside it lies a shelf of few slots for what will probably be asked
/// for next: a request adopts from it, what is left over goes when its block has passed. Nothing in the arena
/// makes room for a guess.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "forebay/experts.h"

#include "core/memory_budget.h"
#include "core/read_queue.h"
#include "experts/eviction_rank.h"
#include "experts/expert_source.h"
#include "experts/expert_store.h"
#include "experts/slot_memory.h"

namespace forebay {

struct ExpertCacheOptions {
  // Changes speed.
  uint64_t budget_bytes = 0;  // of all slots; at least one token's demand
  EvictionPolicy policy = EvictionPolicy::kDecay;
  double half_life = 0;  // of a use's worth, in requests (one per block and window); 0: 40 windows
  ReadEngine engine = ReadEngine::kAuto;
  int queue_depth = 64;      // planes with the drive at most
  uint64_t shelf_bytes = 0;  // of the budget, for experts read ahead; 0: none are
};

/// Confined, one lease at a time: a request may need the room that another lease pins.
class ExpertCache : public ExpertSource {
 public:
  /// `n_used` experts per token must fit: errors name the budget and the least that works.
  static Result<std::unique_ptr<ExpertCache>> create(ExpertStore store, int n_used,
                                                     const ExpertCacheOptions& options, MemoryBudget& budget);
  ~ExpertCache() override;

  Result<ExpertLease> request(int block, std::span<const int32_t> experts) override;
  int64_t max_experts(int block) const override;
  void prefetch(int block, std::span<const int32_t> experts) override;
  int64_t max_prefetch(int block) const override;
  bool resident(ExpertId id) const override { return rank_.resident(id); }
  void on_route(const RouteEvent& event) override { rank_.on_route(event); }

  /// Evicts down to a smaller budget at once; a larger one is used as experts are missed. Same errors as
  /// create.
  Result<void> resize(uint64_t budget_bytes);
  ExpertCacheStats stats() const;
  const ExpertStore& store() const { return store_; }

 protected:
  Result<std::span<const ResidentExpert>> take_ready() override;
  void end_lease() override;

 private:
  enum class Home : uint8_t { kNone, kArena, kShelf };
  enum class State : uint8_t { kEmpty, kReading, kReady, kFailed };
  struct Slot {
    ExpertId id;
    SlotMemory::Piece memory;
    Home home = Home::kNone;
    State state = State::kEmpty;
    bool dropped = false;  // freed once its reads have ended
    int n_pins = 0;
    int n_reads = 0;  // under way
    std::array<const std::byte*, ExpertStore::kMaxReads> pieces = {};
    ResidentExpert expert;
    std::optional<Error> error;
  };

  ExpertCache(ExpertStore store, int n_used, const ExpertCacheOptions& options,
              std::unique_ptr<ReadQueue> reads, MemoryBudget& budget);
  static uint64_t least_budget(const ExpertStore& store, int n_used);
  void set_budget(uint64_t budget_bytes);
  uint64_t arena_limit() const { return stats_.budget_bytes - shelf_limit_; }

  int32_t& slot_of(ExpertId id) { return slot_of_[id.block * n_experts_ + id.index]; }
  uint64_t& bytes_of(Home home) { return home == Home::kArena ? arena_bytes_ : shelf_bytes_; }
  Result<int32_t> take_slot(ExpertId id, Home home);
  Result<void> make_arena_room(uint64_t bytes);
  void start_read(int32_t slot);
  void change_depth(int by);
  void submit_reads();
  void adopt(int32_t slot);
  void release(int32_t slot);  // its memory becomes spare
  void free_spares(uint64_t down_to);
  void expire_shelf(int block);
  void pin(int32_t slot);
  void unpin(int32_t slot);
  void lease(int32_t slot);
  void collect(bool wait);

  const ExpertStore store_;
  const int n_used_;
  const ExpertCacheOptions options_;
  const int64_t n_experts_;

  SlotMemory memory_;
  std::deque<Slot> slots_;
  std::vector<int32_t> slot_of_;  // by block and expert; -1: none
  std::vector<int32_t> empty_;    // slots without memory
  std::vector<int32_t> spare_;    // slots whose memory waits for reuse
  std::vector<int32_t> shelf_;
  EvictionRank rank_;  // of the arena
  uint64_t arena_bytes_ = 0, shelf_bytes_ = 0, shelf_limit_ = 0;
  int last_block_ = -1;
  // The lease: pinned slots, those before n_taken_ handed out; what was handed out last.
  std::vector<int32_t> leased_;
  size_t n_taken_ = 0;
  std::vector<ResidentExpert> ready_;
  ExpertCacheStats stats_;
  std::chrono::steady_clock::time_point busy_since_, depth_since_;
  int n_reads_ = 0;  // slots with reads under way
  std::vector<QueuedRead> unsubmitted_;
  std::vector<FinishedRead> finished_;
  std::unique_ptr<ReadQueue> reads_;  // last: its reads end before what they write to goes
};

}  // namespace forebay
