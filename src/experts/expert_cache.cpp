#include "experts/expert_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of all blocks' slots; 0 where they differ, and where experts come and go: finding huge pages takes time
/// that only slots which stay give back.
uint64_t one_slot_size(const ExpertStore& store, uint64_t budget_bytes) {
  if (budget_bytes < store.all_slot_bytes()) return 0;
  uint64_t size = 0;
  for (int b = 0; b < store.n_blocks(); ++b) {
    if (store.n_experts(b) == 0) continue;
    if (size != 0 && store.slot_bytes(b) != size) return 0;
    size = store.slot_bytes(b);
  }
  return size;
}

int64_t n_slots(const ExpertStore& store) {
  int64_t n = 0;
  for (int b = 0; b < store.n_blocks(); ++b) n += store.n_experts(b);
  return n;
}

}  // namespace

ExpertCache::ExpertCache(ExpertStore store, int n_used, const ExpertCacheOptions& options,
                         std::unique_ptr<ReadQueue> reads, MemoryBudget& budget)
    : store_(std::move(store)),
      n_used_(n_used),
      options_(options),
      n_experts_(store_.max_experts()),
      memory_(budget, one_slot_size(store_, options.budget_bytes), n_slots(store_)),
      slot_of_(static_cast<size_t>(store_.n_blocks() * n_experts_), -1),
      rank_(options.policy, options.half_life > 0 ? options.half_life : 40.0 * store_.n_blocks(),
            store_.n_blocks(), static_cast<int>(n_experts_), n_used),
      reads_(std::move(reads)) {
  // Requests allocate nothing from now on, but for the slots' own memory.
  for (std::vector<int32_t>* slots : {&empty_, &spare_, &shelf_}) slots->reserve(slot_of_.size());
  leased_.reserve(static_cast<size_t>(n_experts_));
  ready_.reserve(static_cast<size_t>(n_experts_));
  unsubmitted_.reserve(kUsualReads);
  finished_.reserve(kUsualReads);
  stats_.direct_io = store_.direct();
  stats_.engine = reads_->engine();
  set_budget(options.budget_bytes);
}

ExpertCache::~ExpertCache() = default;

uint64_t ExpertCache::least_budget(const ExpertStore& store, int n_used) {
  uint64_t least = 0;
  for (int b = 0; b < store.n_blocks(); ++b) least = std::max(least, store.slot_bytes(b) * n_used);
  return least;
}

void ExpertCache::set_budget(uint64_t budget_bytes) {
  stats_.budget_bytes = budget_bytes;
  shelf_limit_ = std::min(options_.shelf_bytes, budget_bytes - least_budget(store_, n_used_));
  // As many slots as it can hold of the smallest, so that a request need not make one.
  uint64_t least_slot = budget_bytes;
  for (int b = 0; b < store_.n_blocks(); ++b)
    if (store_.n_experts(b) > 0) least_slot = std::min(least_slot, store_.slot_bytes(b));
  const size_t most = std::min(slot_of_.size(), static_cast<size_t>(budget_bytes / least_slot));
  memory_.limit(static_cast<int64_t>(most));
  while (slots_.size() < most) {
    empty_.push_back(static_cast<int32_t>(slots_.size()));
    slots_.emplace_back();
  }
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::create(ExpertStore store, int n_used,
                                                         const ExpertCacheOptions& options,
                                                         MemoryBudget& budget) {
  const uint64_t least = least_budget(store, n_used);
  if (options.budget_bytes < least)
    return Error{Code::kInvalidArgument, fmt::format("expert budget: {} bytes, one token needs {} "
                                                     "experts at once: at least {} bytes",
                                                     options.budget_bytes, n_used, least)};
  std::unique_ptr<ReadQueue> reads = TRY(make_read_queue(options.engine, options.queue_depth));
  return std::unique_ptr<ExpertCache>(
      new ExpertCache(std::move(store), n_used, options, std::move(reads), budget));
}

int64_t ExpertCache::max_experts(int block) const {
  return std::min(store_.n_experts(block), static_cast<int64_t>(arena_limit() / store_.slot_bytes(block)));
}

int64_t ExpertCache::max_prefetch(int block) const {
  if (block >= store_.n_blocks()) return 0;
  return static_cast<int64_t>((shelf_limit_ - shelf_bytes_) / store_.slot_bytes(block));
}

// ---- room

void ExpertCache::release(int32_t slot) {
  Slot& s = slots_[slot];
  ENSURE(s.n_pins == 0 && s.n_reads == 0, "a slot in use is not released");
  bytes_of(s.home) -= s.memory.bytes();
  if (s.home == Home::kArena) rank_.erase(s.id);
  slot_of(s.id) = -1;
  s.home = Home::kNone;
  s.state = State::kEmpty;
  s.dropped = false;
  s.error.reset();
  spare_.push_back(slot);
}

void ExpertCache::free_spares(uint64_t down_to) {
  while (!spare_.empty() && stats_.resident_bytes > down_to) {
    Slot& s = slots_[spare_.back()];
    stats_.resident_bytes -= s.memory.bytes();
    s.memory = {};
    empty_.push_back(spare_.back());
    spare_.pop_back();
  }
}

Result<void> ExpertCache::make_arena_room(uint64_t bytes) {
  while (arena_bytes_ + bytes > arena_limit()) {
    if (const std::optional<ExpertId> victim = rank_.coldest()) {
      ++stats_.n_evictions;
      release(slot_of(*victim));
      continue;
    }
    // Reads that nobody waits for any more still hold their room.
    if (n_reads_ == 0)
      return Error{Code::kOutOfMemory,
                   fmt::format("expert cache: {} bytes wanted, all {} of the budget of {} "
                               "are pinned",
                               bytes, arena_bytes_, stats_.budget_bytes)};
    collect(true);
  }
  return {};
}

/// A slot with memory for this expert. In the arena that may evict; on the shelf there is room or there is
/// not.
Result<int32_t> ExpertCache::take_slot(ExpertId id, Home home) {
  const uint64_t bytes = store_.slot_bytes(id.block);
  if (home == Home::kArena) TRY(make_arena_room(bytes));
  int32_t slot = -1;
  const auto fits = std::find_if(spare_.rbegin(), spare_.rend(),
                                 [&](int32_t s) { return slots_[s].memory.bytes() == bytes; });
  if (fits != spare_.rend()) {
    slot = *fits;
    spare_.erase(std::next(fits).base());
  } else {
    free_spares(stats_.budget_bytes - bytes);
    SlotMemory::Piece memory = TRY(memory_.take(bytes));
    if (empty_.empty()) {
      empty_.push_back(static_cast<int32_t>(slots_.size()));
      slots_.emplace_back();
    }
    slot = empty_.back();
    empty_.pop_back();
    slots_[slot].memory = std::move(memory);
    stats_.resident_bytes += bytes;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.resident_bytes);
  }
  slots_[slot].id = id;
  slots_[slot].home = home;
  slot_of(id) = slot;
  bytes_of(home) += bytes;
  if (home == Home::kArena) rank_.insert(id);
  return slot;
}

// ---- reads

void ExpertCache::start_read(int32_t slot) {
  Slot& s = slots_[slot];
  s.state = State::kReading;
  s.n_reads = store_.n_reads(s.id.block);
  if (s.home == Home::kArena) rank_.pin(s.id);  // until the reads have ended
  change_depth(1);
  store_.reads(s.id, {s.memory.data(), s.memory.bytes()},
               static_cast<uint64_t>(slot) * ExpertStore::kMaxReads, unsubmitted_);
}

void ExpertCache::change_depth(int by) {
  const Clock::time_point now = Clock::now();
  const auto since = [&](Clock::time_point start) {
    return std::chrono::duration<double>(now - start).count();
  };
  if (n_reads_ == 0) busy_since_ = depth_since_ = now;
  stats_.read_seconds += n_reads_ * since(depth_since_);
  depth_since_ = now;
  n_reads_ += by;
  stats_.peak_reads = std::max(stats_.peak_reads, static_cast<uint64_t>(n_reads_));
  if (n_reads_ == 0) stats_.busy_seconds += since(busy_since_);
}

void ExpertCache::submit_reads() {
  if (unsubmitted_.empty()) return;
  reads_->submit(unsubmitted_);
  unsubmitted_.clear();
}

void ExpertCache::collect(bool wait) {
  if (n_reads_ == 0) return;
  submit_reads();
  finished_.clear();
  reads_->collect(finished_, wait);
  for (FinishedRead& read : finished_) {
    const auto slot = static_cast<int32_t>(read.tag / ExpertStore::kMaxReads);
    Slot& s = slots_[slot];
    if (read.bytes)
      s.pieces[read.tag % ExpertStore::kMaxReads] = read.bytes->data();
    else
      s.error = Error{read.bytes.error().code, fmt::format("expert {} of block {}: {}", s.id.index,
                                                           s.id.block, read.bytes.error().message)};
    if (--s.n_reads > 0) continue;
    change_depth(-1);
    s.state = s.error ? State::kFailed : State::kReady;
    if (!s.error) {
      s.expert = store_.assemble(s.id, s.pieces);
      stats_.bytes_read += store_.expert_bytes(s.id.block);
    }
    if (s.home == Home::kArena) rank_.unpin(s.id);
    if (s.dropped || (s.error && s.n_pins == 0)) {
      std::erase(shelf_, slot);
      release(slot);
    }
  }
}

// ---- requests

void ExpertCache::pin(int32_t slot) {
  ++slots_[slot].n_pins;
  rank_.pin(slots_[slot].id);
}

void ExpertCache::unpin(int32_t slot) {
  Slot& s = slots_[slot];
  rank_.unpin(s.id);
  if (--s.n_pins == 0 && s.state == State::kFailed) release(slot);
}

void ExpertCache::lease(int32_t slot) {
  pin(slot);
  leased_.push_back(slot);
}

void ExpertCache::end_lease() {
  for (int32_t slot : leased_) unpin(slot);
  leased_.clear();
  n_taken_ = 0;
}

Result<std::span<const ResidentExpert>> ExpertCache::take_ready() {
  ready_.clear();
  collect(false);
  while (n_taken_ < leased_.size()) {
    for (size_t i = n_taken_; i < leased_.size(); ++i) {
      const Slot& slot = slots_[leased_[i]];
      if (slot.state == State::kFailed) return *slot.error;
      if (slot.state != State::kReady) continue;
      ready_.push_back(slot.expert);
      std::swap(leased_[i], leased_[n_taken_++]);
    }
    if (!ready_.empty()) break;
    const Clock::time_point start = Clock::now();
    collect(true);
    stats_.wait_seconds += seconds_since(start);
  }
  return std::span<const ResidentExpert>(ready_);
}

/// From the shelf to the arena, whether or not its read has ended.
void ExpertCache::adopt(int32_t slot) {
  Slot& s = slots_[slot];
  std::erase(shelf_, slot);
  shelf_bytes_ -= s.memory.bytes();
  arena_bytes_ += s.memory.bytes();
  s.home = Home::kArena;
  rank_.insert(s.id);
  if (s.state == State::kReading) rank_.pin(s.id);
}

void ExpertCache::expire_shelf(int block) {
  std::erase_if(shelf_, [&](int32_t slot) {
    Slot& s = slots_[slot];
    if (s.id.block == block) return false;
    if (s.state == State::kReading) {
      s.dropped = true;
      return false;
    }
    release(slot);
    return true;
  });
}

Result<ExpertLease> ExpertCache::request(int block, std::span<const int32_t> experts) {
  ENSURE(leased_.empty(), "one lease at a time");
  rank_.on_request();
  collect(false);
  if (block != last_block_) expire_shelf(block);
  last_block_ = block;
  ExpertLease lease_of_all(*this);  // what is pinned so far goes with it when there is an error
  // What is here is pinned first, so that making room for the rest cannot take it.
  for (int32_t e : experts) {
    const ExpertId id{block, e};
    rank_.on_use(id);
    const int32_t slot = slot_of(id);
    if (slot < 0) continue;
    if (slots_[slot].home == Home::kShelf) {
      slots_[slot].dropped = false;
      adopt(slot);
      ++stats_.n_prefetch_used;
    } else {
      ++stats_.n_hits;
    }
    lease(slot);
  }
  TRY(make_arena_room(0));  // for what was adopted
  for (int32_t e : experts) {
    const ExpertId id{block, e};
    if (slot_of(id) >= 0) continue;
    const Result<int32_t> slot = take_slot(id, Home::kArena);
    if (!slot) {
      submit_reads();
      return slot.error();
    }
    ++stats_.n_misses;
    lease(*slot);
    start_read(*slot);
  }
  submit_reads();
  return lease_of_all;
}

void ExpertCache::prefetch(int block, std::span<const int32_t> experts) {
  for (int32_t e : experts) {
    const ExpertId id{block, e};
    if (slot_of(id) >= 0) continue;
    if (shelf_bytes_ + store_.slot_bytes(block) > shelf_limit_) break;
    const Result<int32_t> slot = take_slot(id, Home::kShelf);
    if (!slot) break;  // only a hint
    shelf_.push_back(*slot);
    ++stats_.n_prefetched;
    start_read(*slot);
  }
  submit_reads();
}

Result<void> ExpertCache::resize(uint64_t budget_bytes) {
  if (budget_bytes < least_budget(store_, n_used_))
    return Error{Code::kInvalidArgument, fmt::format("expert budget: {} bytes, expected at least {}",
                                                     budget_bytes, least_budget(store_, n_used_))};
  // The shelf starts again: its share changes too.
  expire_shelf(-1);
  while (!shelf_.empty()) collect(true);
  set_budget(budget_bytes);
  TRY(make_arena_room(0));
  free_spares(budget_bytes);
  return {};
}

ExpertCacheStats ExpertCache::stats() const {
  ExpertCacheStats stats = stats_;
  if (n_reads_ > 0) stats.busy_seconds += seconds_since(busy_since_);
  return stats;
}

}  // namespace forebay
