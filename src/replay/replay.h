/// Many configurations over one trace, and how far each is from the best possible.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "replay/simulate.h"

namespace forebay {

/// Every combination is run; what does not apply to a policy is not multiplied: lru and lfu have no
/// half-life, Belady's MIN neither that nor a bias nor a shelf.
struct ReplayGrid {
  std::vector<std::optional<EvictionPolicy>> policies;  // none: Belady's MIN
  std::vector<uint64_t> budgets;
  std::vector<double> half_lives{2000};
  std::vector<RouteBias> biases{RouteBias{}};
  std::vector<RouteBias> prompt_biases{RouteBias{.lambda = 0, .protect = 4}};
  std::vector<double> shelves{0};  // shares of the budget

  std::vector<ReplayConfig> configs() const;
};

struct ReplayRow {
  ReplayResult result;
  uint64_t min_misses = 0;  // of Belady's MIN with the same budget under exact routing

  double misses_per_token() const { return per_token(static_cast<double>(result.counted.n_misses)); }
  double bytes_per_token() const { return per_token(static_cast<double>(result.counted.bytes_read)); }
  double seconds_per_token() const { return per_token(result.counted.seconds); }
  double hit_rate() const {
    const ReplayCounts& c = result.counted;
    const auto read = static_cast<double>(c.n_misses + c.n_ahead_used);
    return c.n_uses == 0 ? 0 : 1 - read / static_cast<double>(c.n_uses);
  }
  /// Misses above MIN's, as a share of MIN's; biased routing can be below 0. Zero when neither misses.
  double gap_to_min() const;

 private:
  double per_token(double sum) const {
    return result.counted.n_tokens == 0 ? 0 : sum / static_cast<double>(result.counted.n_tokens);
  }
};

/// "decay", "belady".
std::string_view name_of(const std::optional<EvictionPolicy>& policy);
/// What `name_of` gives, back. Errors: kInvalidArgument lists the names.
Result<std::optional<EvictionPolicy>> replay_policy_from_name(std::string_view name);

/// "25%" of all experts' slots, "1000" slots of the mean size, "8G", in bytes.
Result<uint64_t> parse_slots(const RouteLog& log, std::string_view text);

/// Simulates the grid's configurations on the pool's threads, in the grid's order whatever the timing. Calls
/// on_progress (configurations done, all) from the calling thread, at the end too. Errors: kInvalidArgument
/// for a budget that is too small, kCancelled, kOutOfMemory.
Result<std::vector<ReplayRow>> replay(const RouteLog& log, const ReplayGrid& grid,
                                      const ReplayOptions& options, ThreadPool& pool,
                                      const std::function<void(size_t done, size_t all)>& on_progress,
                                      std::stop_token stop);

}  // namespace forebay
