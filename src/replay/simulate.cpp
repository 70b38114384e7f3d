#include "replay/simulate.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "experts/eviction_rank.h"

namespace forebay {
namespace {

/// Counts what happens, where it belongs.
class Ledger {
 public:
  Ledger(const RouteLog& log, const ReplayConfig& config, const ReplayOptions& options)
      : log_(log),
        options_(options),
        seen_(static_cast<size_t>(log.header.n_blocks()) * log.header.n_experts) {
    result_.config = config;
  }

  void begin(const LoggedRequest& request) {
    const bool decode = request.phase != RoutePhase::kPrefill;
    const bool counted =
        options_.phases == ReplayPhases::kAll || decode == (options_.phases == ReplayPhases::kDecode);
    const bool warm_up = request.n_tokens_before < options_.warm_up_tokens;
    counts_ = !counted ? &ignored_ : warm_up ? &result_.warm_up : &result_.counted;
    counts_->n_tokens += request.new_tokens;
    expert_bytes_ = log_.header.expert_bytes[request.block];
    block_start_ = static_cast<size_t>(request.block) * log_.header.n_experts;
    n_misses_ = n_adopted_ = 0;
    bytes_ahead_ = 0;
  }

  void adopted() {
    ++n_adopted_;
    ++counts_->n_ahead_used;
  }
  void read_ahead(uint64_t bytes) {
    ++counts_->n_ahead;
    bytes_ahead_ += bytes;
  }
  void miss(uint16_t expert) {
    ++n_misses_;
    uint8_t& seen = seen_[block_start_ + expert];
    counts_->n_cold += 1 - seen;
    seen = 1;
  }
  void swapped(int n) { counts_->n_swapped += n; }

  /// `n_forced`: reads of experts that the trace does not name.
  void end(uint64_t n_uses, uint64_t n_forced) {
    n_uses += n_forced;
    n_misses_ += n_forced;
    const uint64_t bytes = n_misses_ * expert_bytes_;
    ++counts_->n_requests;
    counts_->n_uses += n_uses;
    counts_->n_misses += n_misses_;
    counts_->n_forced += n_forced;
    counts_->bytes_read += bytes + bytes_ahead_;
    const ReplayCost& cost = options_.cost;
    // What was read ahead for this request and has not come yet is waited for like a miss.
    double disk = disk_behind_;
    if (n_misses_ > 0)
      disk += cost.disk_latency_seconds + static_cast<double>(bytes) / cost.disk_bytes_per_second;
    const double hits =
        static_cast<double>((n_uses - n_misses_ - n_adopted_) * expert_bytes_) / cost.memory_bytes_per_second;
    const double read = static_cast<double>((n_misses_ + n_adopted_) * expert_bytes_);
    const double after = read / cost.memory_bytes_per_second;
    counts_->seconds += std::max(disk, hits) + after;
    // Reads ahead start behind this request's own, and go on while it computes.
    disk_behind_ = std::max(0.0, static_cast<double>(bytes_ahead_) / cost.disk_bytes_per_second -
                                     std::max(0.0, hits - disk) - after);
  }

  ReplayResult take() { return result_; }

 private:
  const RouteLog& log_;
  const ReplayOptions& options_;
  ReplayResult result_;
  ReplayCounts ignored_;
  ReplayCounts* counts_ = &ignored_;
  std::vector<uint8_t> seen_;
  uint64_t expert_bytes_ = 0;
  size_t block_start_ = 0;
  uint64_t n_misses_ = 0, n_adopted_ = 0;
  uint64_t bytes_ahead_ = 0;
  double disk_behind_ = 0;  // seconds of reading ahead that are left when the next request begins
};

uint64_t forced_misses(const RouteLog& log, const LoggedRequest& request) {
  uint64_t n = 0;
  for (uint32_t row = request.first_row; row < request.first_row + request.n_rows; ++row)
    n += log.n_forced(row);
  return n;
}

/// How many experts of a block one request may name: a layer with more asks in waves.
size_t wave_of(const RouteLog& log, int block, uint64_t budget_bytes) {
  return std::max<uint64_t>(1, budget_bytes / std::max<uint64_t>(1, log.header.slot_bytes[block]));
}

/// The cache, with the rank that the live one uses.
class Cache {
 public:
  Cache(const RouteLog& log, const ReplayConfig& config)
      : log_(log),
        budget_bytes_(arena_bytes(log, config)),
        shelf_limit_(config.budget_bytes - budget_bytes_),
        on_shelf_(static_cast<size_t>(log.header.n_blocks()) * log.header.n_experts),
        rank_(*config.policy, config.half_life, log.header.n_blocks(), log.header.n_experts,
              log.header.n_used) {}

  EvictionRank& rank() { return rank_; }

  bool reads_ahead() const { return shelf_limit_ > 0; }
  /// How many of a block one request may name.
  size_t wave(int block) const { return wave_of(log_, block, budget_bytes_); }

  void request(int block, std::span<const uint16_t> experts, Ledger& ledger) {
    rank_.on_request();
    if (reads_ahead() && block != last_block_) expire_shelf(block);
    last_block_ = block;
    // Hits are pinned before anything is evicted for the misses.
    missing_.clear();
    const uint64_t slot_bytes = log_.header.slot_bytes[block];
    for (const uint16_t e : experts) {
      const ExpertId id{block, e};
      rank_.pin(id);
      rank_.on_use(id);
      if (rank_.resident(id)) continue;
      if (reads_ahead() && on_shelf_[index_of(id)] != 0) {
        on_shelf_[index_of(id)] = 0;
        shelf_bytes_ -= slot_bytes;
        rank_.insert(id);
        resident_bytes_ += slot_bytes;
        ledger.adopted();
      } else {
        missing_.push_back(e);
      }
    }
    make_room(0);  // for what was adopted
    for (const uint16_t e : missing_) {
      ledger.miss(e);
      make_room(slot_bytes);
      rank_.insert({block, e});
      resident_bytes_ += slot_bytes;
    }
    for (const uint16_t e : experts) rank_.unpin({block, e});
  }

  void read_ahead(int block, std::span<const uint16_t> experts, Ledger& ledger) {
    const uint64_t slot_bytes = log_.header.slot_bytes[block];
    for (const uint16_t e : experts) {
      const size_t index = index_of({block, e});
      if (rank_.resident({block, e}) || on_shelf_[index] != 0) continue;
      if (shelf_bytes_ + slot_bytes > shelf_limit_) break;
      on_shelf_[index] = 1;
      shelf_.push_back(static_cast<uint32_t>(index));
      shelf_bytes_ += slot_bytes;
      ledger.read_ahead(log_.header.expert_bytes[block]);
    }
  }

 private:
  static uint64_t arena_bytes(const RouteLog& log, const ReplayConfig& config) {
    const uint64_t least = log.largest_slot_bytes() * log.header.n_used;
    return config.budget_bytes - std::min(config.shelf_bytes, config.budget_bytes - least);
  }
  size_t index_of(ExpertId id) const {
    return static_cast<size_t>(id.block) * log_.header.n_experts + static_cast<size_t>(id.index);
  }
  void make_room(uint64_t bytes) {
    while (resident_bytes_ + bytes > budget_bytes_) {
      const std::optional<ExpertId> victim = rank_.coldest();
      ENSURE(victim.has_value(), "replay: the budget does not hold one wave");
      rank_.erase(*victim);
      resident_bytes_ -= log_.header.slot_bytes[victim->block];
    }
  }
  /// What is left over of other blocks goes.
  void expire_shelf(int block) {
    std::erase_if(shelf_, [&](uint32_t index) {
      const int of = static_cast<int>(index / log_.header.n_experts);
      if (of == block) return false;
      if (on_shelf_[index] != 0) shelf_bytes_ -= log_.header.slot_bytes[of];
      on_shelf_[index] = 0;
      return true;
    });
  }

  const RouteLog& log_;
  const uint64_t budget_bytes_;  // of the arena
  const uint64_t shelf_limit_;
  uint64_t resident_bytes_ = 0, shelf_bytes_ = 0;
  std::vector<uint8_t> on_shelf_;
  std::vector<uint32_t> shelf_;  // what was put there, and may have been adopted since
  int last_block_ = -1;
  EvictionRank rank_;
  std::vector<uint16_t> missing_;
};

/// A request's experts when routing prefers what is in memory as the request begins.
class BiasedRouter {
 public:
  explicit BiasedRouter(const RouteLog& log) : log_(log), distinct_(log.header.n_experts) {}

  std::span<const uint16_t> route(const LoggedRequest& request, const RouteBias& bias,
                                  const EvictionRank& rank, Ledger& ledger) {
    distinct_.clear();
    const uint32_t first_exact = request.first_row + request.n_rows - request.n_exact;
    for (uint32_t row = request.first_row; row < request.first_row + request.n_rows; ++row)
      if (row < first_exact)
        route_row(request.block, log_.candidates(row), bias, rank, ledger);
      else
        for (const uint16_t e : first_choices(log_.candidates(row))) distinct_.add(e);
    return request.n_rows == 1 ? distinct_.list() : distinct_.sorted();
  }

 private:
  std::span<const uint16_t> first_choices(const RouteCandidates& row) const {
    return row.ids.first(std::min<size_t>(row.ids.size(), log_.header.n_used));
  }

  void route_row(int block, const RouteCandidates& row, const RouteBias& bias, const EvictionRank& rank,
                 Ledger& ledger) {
    const int k = log_.header.n_used;
    const size_t n = std::min<size_t>(row.ids.size(), std::max(k, bias.window));
    uint64_t resident = 0;
    for (size_t r = 0; r < n; ++r) {
      logits_[r] = -static_cast<float>(row.gaps[r]) / kLogitSteps;
      resident |= static_cast<uint64_t>(rank.resident({block, row.ids[r]})) << r;
    }
    uint64_t chosen = choose_biased(std::span(logits_).first(n), resident, k, bias);
    ledger.swapped(std::popcount(chosen >> (k - 1) >> 1));  // k may be 64
    for (; chosen != 0; chosen &= chosen - 1) distinct_.add(row.ids[std::countr_zero(chosen)]);
  }

  const RouteLog& log_;
  DistinctExperts distinct_;
  std::array<float, kMaxRouteWindow> logits_{};
};

ReplayResult simulate_policy(const RouteLog& log, const ReplayConfig& config, const ReplayOptions& options) {
  Ledger ledger(log, config, options);
  Cache cache(log, config);
  BiasedRouter router(log);
  std::vector<uint32_t> votes(log.header.n_experts);
  std::vector<uint16_t> guessed;
  for (size_t r = 0; r < log.requests.size(); ++r) {
    const LoggedRequest& request = log.requests[r];
    ledger.begin(request);
    std::span<const uint16_t> experts = std::span(log.uses).subspan(request.first_use, request.n_uses);
    const RouteBias& bias = request.phase == RoutePhase::kPrefill ? config.prompt_bias : config.bias;
    if (bias.lambda > 0) experts = router.route(request, bias, cache.rank(), ledger);
    if (cache.rank().uses_routes())
      for (uint32_t row = request.first_row; row < request.first_row + request.n_rows; ++row)
        cache.rank().on_route(request.block, log.candidates(row));
    const size_t n_uses = experts.size();
    const size_t wave = cache.wave(request.block);
    for (; experts.size() > wave; experts = experts.subspan(wave))
      cache.request(request.block, experts.first(wave), ledger);
    cache.request(request.block, experts, ledger);
    if (cache.reads_ahead() && r + 1 < log.requests.size() && log.requests[r + 1].block > request.block) {
      guess_experts(log, r + 1, options.guess, votes, guessed);
      cache.read_ahead(log.requests[r + 1].block, guessed, ledger);
    }
    ledger.end(n_uses, forced_misses(log, request));
  }
  return ledger.take();
}

/// Belady's MIN: the victim is the expert that is needed furthest in the future; ties: lowest id. With slots
/// of one size no cache has fewer misses.
class MinCache {
 public:
  MinCache(const RouteLog& log, uint64_t budget_bytes)
      : log_(log),
        budget_bytes_(budget_bytes),
        experts_(static_cast<size_t>(log.header.n_blocks()) * log.header.n_experts) {}

  /// `uses` are indices into the log's.
  void request(int block, uint32_t first_use, size_t n, Ledger& ledger) {
    const uint32_t block_start = static_cast<uint32_t>(block) * log_.header.n_experts;
    const uint64_t slot_bytes = log_.header.slot_bytes[block];
    // What this request names has no valid entry until it is over, so it cannot be evicted for its own
    // misses.
    missing_.clear();
    for (uint32_t u = first_use; u < first_use + n; ++u) {
      Expert& e = experts_[block_start + log_.uses[u]];
      e.next_use = log_.next_use[u];
      e.queued = false;
      if (!e.resident) missing_.push_back(log_.uses[u]);
    }
    for (const uint16_t expert : missing_) {
      ledger.miss(expert);
      while (resident_bytes_ + slot_bytes > budget_bytes_) evict();
      experts_[block_start + expert].resident = true;
      resident_bytes_ += slot_bytes;
      ++n_resident_;
    }
    for (uint32_t u = first_use; u < first_use + n; ++u) push(block_start + log_.uses[u]);
    if (heap_.size() > 2 * n_resident_ + 4096) drop_stale();
  }

 private:
  struct Expert {
    uint32_t next_use = kNeverAgain;
    bool resident = false;
    bool queued = false;  // has an entry that says next_use
  };

  // Largest first: the next use, then the lowest index.
  static uint64_t pack(uint32_t next_use, uint32_t index) {
    return static_cast<uint64_t>(next_use) << 32 | (UINT32_MAX - index);
  }
  static uint32_t index_in(uint64_t entry) { return UINT32_MAX - static_cast<uint32_t>(entry); }
  bool valid(uint64_t entry) const {
    const Expert& e = experts_[index_in(entry)];
    return e.resident && e.queued && e.next_use == entry >> 32;
  }

  void push(uint32_t index) {
    experts_[index].queued = true;
    heap_.push_back(pack(experts_[index].next_use, index));
    std::push_heap(heap_.begin(), heap_.end());
  }

  void evict() {
    while (true) {
      ENSURE(!heap_.empty(), "replay: the budget does not hold one wave");
      std::pop_heap(heap_.begin(), heap_.end());
      const uint64_t entry = heap_.back();
      heap_.pop_back();
      if (!valid(entry)) continue;
      Expert& e = experts_[index_in(entry)];
      e.resident = e.queued = false;
      resident_bytes_ -= log_.header.slot_bytes[index_in(entry) / log_.header.n_experts];
      --n_resident_;
      return;
    }
  }

  /// Entries whose expert was used since lie at the bottom and would stay for ever.
  void drop_stale() {
    std::erase_if(heap_, [this](uint64_t entry) { return !valid(entry); });
    std::make_heap(heap_.begin(), heap_.end());
  }

  const RouteLog& log_;
  const uint64_t budget_bytes_;
  uint64_t resident_bytes_ = 0;
  size_t n_resident_ = 0;
  std::vector<Expert> experts_;
  std::vector<uint64_t> heap_;
  std::vector<uint16_t> missing_;
};

ReplayResult simulate_min(const RouteLog& log, const ReplayConfig& config, const ReplayOptions& options) {
  Ledger ledger(log, config, options);
  MinCache cache(log, config.budget_bytes);
  for (const LoggedRequest& request : log.requests) {
    ledger.begin(request);
    const size_t wave = wave_of(log, request.block, config.budget_bytes);
    for (size_t done = 0; done < request.n_uses; done += wave)
      cache.request(request.block, request.first_use + static_cast<uint32_t>(done),
                    std::min<size_t>(wave, request.n_uses - done), ledger);
    ledger.end(request.n_uses, forced_misses(log, request));
  }
  return ledger.take();
}

/// A number in [0, 1) that hangs on the row and the rank alone.
double chance(uint64_t row, uint32_t rank) {
  uint64_t z = (row << 6 | rank) * 0x9e37'79b9'7f4a'7c15u;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  return static_cast<double>((z ^ (z >> 27)) >> 11) * 0x1p-53;
}

}  // namespace

void guess_experts(const RouteLog& log, size_t r, const ReplayGuess& guess, std::vector<uint32_t>& votes,
                   std::vector<uint16_t>& experts) {
  constexpr uint32_t kSure = 3, kManyRows = 16;  // as layers/ffn.cpp reads ahead
  const LoggedRequest& request = log.requests[r];
  const auto used = static_cast<uint32_t>(log.header.n_used);
  const uint32_t k = request.n_rows < kManyRows ? std::min(kSure, used) : used;
  experts.clear();
  for (uint32_t row = request.first_row; row < request.first_row + request.n_rows; ++row) {
    const RouteCandidates candidates = log.candidates(row);
    for (uint32_t rank = 0; rank < k; ++rank) {
      const uint32_t meant = chance(row, rank) < guess.right ? rank : used + rank;
      if (meant >= candidates.ids.size()) continue;
      const uint16_t e = candidates.ids[meant];
      if (votes[e] == 0) experts.push_back(e);
      votes[e] += 1 + k - rank;
    }
  }
  std::sort(experts.begin(), experts.end(),
            [&](uint16_t a, uint16_t b) { return votes[a] != votes[b] ? votes[a] > votes[b] : a < b; });
  for (const uint16_t e : experts) votes[e] = 0;
}

Result<void> check_budget(const RouteLog& log, uint64_t budget_bytes) {
  const uint64_t least = log.largest_slot_bytes() * log.header.n_used;
  if (budget_bytes < least)
    return Error{Code::kInvalidArgument,
                 fmt::format("{} bytes of slots, one token needs {} experts at once: at least "
                             "{} bytes",
                             budget_bytes, log.header.n_used, least)};
  return {};
}

ReplayResult simulate(const RouteLog& log, const ReplayConfig& config, const ReplayOptions& options) {
  return config.policy ? simulate_policy(log, config, options) : simulate_min(log, config, options);
}

}  // namespace forebay
