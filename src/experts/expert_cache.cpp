#include "experts/expert_cache.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

namespace forebay {
struct ExpertCache::Slot {
  enum class State { kReading, kReady, kFailed };

  ExpertId id;
  Buffer memory;
  State state = State::kReading;
  int n_pins = 0;
  ResidentExpert resident;
  std::optional<Error> error;
  uint64_t last_use = 0;
  double uses = 0;  // decayed to last_use
};

/// Pins on the slots of one request; those before n_taken_ were handed out.
class ExpertCache::Lease : public ExpertLease::Impl {
 public:
  Lease(ExpertCache& cache, std::vector<Slot*> slots) : cache_(cache), slots_(std::move(slots)) {}
  ~Lease() override { cache_.unpin(slots_); }

  Result<std::vector<ResidentExpert>> take_ready() override {
    std::vector<ResidentExpert> ready;
    std::unique_lock lock(cache_.mutex_);
    while (n_taken_ < slots_.size()) {
      for (size_t i = n_taken_; i < slots_.size(); ++i) {
        if (slots_[i]->state == Slot::State::kFailed) return *slots_[i]->error;
        if (slots_[i]->state != Slot::State::kReady) continue;
        ready.push_back(slots_[i]->resident);
        std::swap(slots_[i], slots_[n_taken_++]);
      }
      if (!ready.empty()) break;
      const auto start = std::chrono::steady_clock::now();
      cache_.changed_.wait(lock);
      cache_.stats_.wait_seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return ready;
  }

 private:
  ExpertCache& cache_;
  std::vector<Slot*> slots_;
  size_t n_taken_ = 0;
};

ExpertCache::ExpertCache(ExpertStore store, int n_used, const ExpertCacheOptions& options,
                         MemoryBudget& budget)
    : store_(std::move(store)),
      n_used_(n_used),
      options_(options),
      budget_(budget),
      readers_(options.n_readers) {
  stats_.budget_bytes = options.budget_bytes;
  stats_.direct_io = store_.direct();
}

ExpertCache::~ExpertCache() = default;

Result<void> ExpertCache::check_budget(uint64_t budget_bytes) const {
  uint64_t least = 0;
  for (int b = 0; b < store_.n_blocks(); ++b) least = std::max(least, store_.slot_bytes(b) * n_used_);
  if (budget_bytes < least)
    return Error{Code::kInvalidArgument, fmt::format("expert budget: {} bytes, one token needs {} "
                                                     "experts at once: at least {} bytes",
                                                     budget_bytes, n_used_, least)};
  return {};
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::create(ExpertStore store, int n_used,
                                                         const ExpertCacheOptions& options,
                                                         MemoryBudget& budget) {
  if (options.n_readers < 1 || options.n_readers > 256)
    return Error{Code::kInvalidArgument, fmt::format("readers: {}, expected 1 to 256", options.n_readers)};
  std::unique_ptr<ExpertCache> cache(new ExpertCache(std::move(store), n_used, options, budget));
  TRY(cache->check_budget(options.budget_bytes));
  return cache;
}

int64_t ExpertCache::max_experts(int block) const {
  std::lock_guard lock(mutex_);
  return std::min(store_.n_experts(block),
                  static_cast<int64_t>(stats_.budget_bytes / store_.slot_bytes(block)));
}

void ExpertCache::touch(Slot& slot) {
  const auto age = static_cast<double>(clock_ - slot.last_use);
  const double kept = options_.policy == EvictionPolicy::kDecay ? std::exp2(-age / options_.half_life) : 1.0;
  slot.uses = slot.uses * kept + 1.0;
  slot.last_use = clock_;
}

ExpertCache::Slot* ExpertCache::find_victim() {
  Slot* victim = nullptr;
  double least = 0;
  for (auto& [id, slot] : slots_) {
    if (slot->n_pins > 0 || slot->state == Slot::State::kReading) continue;
    double worth = static_cast<double>(slot->last_use);
    if (options_.policy == EvictionPolicy::kLfu) worth = slot->uses;
    if (options_.policy == EvictionPolicy::kDecay)
      worth = slot->uses * std::exp2(-static_cast<double>(clock_ - slot->last_use) / options_.half_life);
    if (victim == nullptr || worth < least || (worth == least && slot->last_use < victim->last_use)) {
      victim = slot.get();
      least = worth;
    }
  }
  return victim;
}

Result<void> ExpertCache::make_room(uint64_t bytes, std::unique_lock<std::mutex>& lock) {
  while (stats_.resident_bytes + bytes > stats_.budget_bytes) {
    if (Slot* victim = find_victim()) {
      stats_.resident_bytes -= victim->memory.bytes();
      ++stats_.n_evictions;
      slots_.erase(victim->id);
      continue;
    }
    // Reads that nobody waits for any more still hold their room.
    const bool reading = std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
      return entry.second->state == Slot::State::kReading;
    });
    if (!reading)
      return Error{Code::kOutOfMemory, fmt::format("expert cache: {} bytes wanted, all {} of the "
                                                   "budget of {} are pinned",
                                                   bytes, stats_.resident_bytes, stats_.budget_bytes)};
    changed_.wait(lock);
  }
  return {};
}

Result<ExpertLease> ExpertCache::request(int block, std::span<const int32_t> experts) {
  std::unique_lock lock(mutex_);
  ++clock_;
  std::vector<Slot*> pinned;
  std::vector<ExpertId> missing;
  // Hits are pinned first, so that making room for the misses cannot take them.
  for (int32_t e : experts) {
    const ExpertId id{block, e};
    const auto at = slots_.find(id);
    if (at != slots_.end() && at->second->state != Slot::State::kFailed) {
      ++at->second->n_pins;
      touch(*at->second);
      pinned.push_back(at->second.get());
      ++stats_.n_hits;
    } else {
      if (at != slots_.end()) {
        stats_.resident_bytes -= at->second->memory.bytes();
        slots_.erase(at);
      }
      missing.push_back(id);
    }
  }
  const auto give_up = [&](Error error) {
    for (Slot* slot : pinned) --slot->n_pins;
    return error;
  };
  for (const ExpertId& id : missing) {
    const uint64_t bytes = store_.slot_bytes(block);
    if (Result<void> room = make_room(bytes, lock); !room) return give_up(std::move(room).error());
    Result<Buffer> memory = Buffer::allocate(budget_, bytes, "experts");
    if (!memory) return give_up(std::move(memory).error());
    stats_.resident_bytes += bytes;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.resident_bytes);
    ++stats_.n_misses;
    auto slot = std::make_unique<Slot>();
    slot->id = id;
    slot->memory = std::move(memory).value();
    slot->n_pins = 1;
    slot->last_use = clock_;
    slot->uses = 1.0;
    pinned.push_back(slot.get());
    readers_.submit([this, target = slot.get()] { read(*target); });
    slots_.emplace(id, std::move(slot));
  }
  return ExpertLease(std::make_unique<Lease>(*this, std::move(pinned)));
}

void ExpertCache::read(Slot& slot) {
  // The slot is being read: nobody frees it, and nobody else touches its memory.
  Result<ResidentExpert> resident = store_.read(slot.id, {slot.memory.data(), slot.memory.bytes()});
  {
    std::lock_guard lock(mutex_);
    if (resident) {
      slot.resident = *resident;
      slot.state = Slot::State::kReady;
      stats_.bytes_read += store_.expert_bytes(slot.id.block);
    } else {
      slot.error = std::move(resident).error();
      slot.state = Slot::State::kFailed;
    }
  }
  changed_.notify_all();
}

void ExpertCache::unpin(std::span<Slot* const> slots) {
  std::lock_guard lock(mutex_);
  for (Slot* slot : slots) --slot->n_pins;
}

Result<void> ExpertCache::resize(uint64_t budget_bytes) {
  TRY(check_budget(budget_bytes));
  std::unique_lock lock(mutex_);
  stats_.budget_bytes = budget_bytes;
  return make_room(0, lock);
}

ExpertCacheStats ExpertCache::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace forebay
