#include "replay/replay.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "core/parse.h"

namespace forebay {
namespace {

constexpr std::string_view kMinName = "belady";
constexpr EvictionPolicy kPolicies[] = {EvictionPolicy::kLru,      EvictionPolicy::kDecay,
                                        EvictionPolicy::kLfu,      EvictionPolicy::kEma,
                                        EvictionPolicy::kNearPick, EvictionPolicy::kInverse};

bool has_half_life(const std::optional<EvictionPolicy>& policy) {
  return policy && *policy != EvictionPolicy::kLru && *policy != EvictionPolicy::kLfu;
}

}  // namespace

std::vector<ReplayConfig> ReplayGrid::configs() const {
  std::vector<ReplayConfig> all;
  for (const std::optional<EvictionPolicy>& policy : policies)
    for (const double half_life : half_lives) {
      if (!policy) {
        for (const uint64_t budget : budgets) all.push_back({policy, budget, half_life});
        break;
      }
      for (const RouteBias& bias : biases)
        for (const RouteBias& prompt_bias : prompt_biases)
          for (const double shelf : shelves)
            for (const uint64_t budget : budgets)
              all.push_back({policy, budget, half_life, bias, prompt_bias,
                             static_cast<uint64_t>(shelf * static_cast<double>(budget))});
      if (!has_half_life(policy)) break;
    }
  return all;
}

double ReplayRow::gap_to_min() const {
  const auto misses = static_cast<double>(result.counted.n_misses);
  if (min_misses == 0) return misses == 0 ? 0 : std::numeric_limits<double>::infinity();
  return misses / static_cast<double>(min_misses) - 1;
}

std::string_view name_of(const std::optional<EvictionPolicy>& policy) {
  return policy ? name_of(*policy) : kMinName;
}

Result<std::optional<EvictionPolicy>> replay_policy_from_name(std::string_view name) {
  if (name == kMinName) return std::optional<EvictionPolicy>();
  if (const std::optional<EvictionPolicy> policy = eviction_policy_from_name(name)) return policy;
  std::string names;
  for (const EvictionPolicy policy : kPolicies) names += std::string(name_of(policy)) + ", ";
  return Error{Code::kInvalidArgument, fmt::format("policy '{}', expected {}{}", name, names, kMinName)};
}

Result<uint64_t> parse_slots(const RouteLog& log, std::string_view text) {
  const uint64_t total = log.total_slot_bytes();
  if (text.ends_with('%')) {
    const double percent = TRY(parse_double(text.substr(0, text.size() - 1), 0, 100));
    return static_cast<uint64_t>(std::llround(static_cast<double>(total) * percent / 100));
  }
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return parse_bytes(text);
  const int64_t n_all = int64_t{log.n_blocks_with_experts()} * log.header.n_experts;
  const int64_t n_slots = TRY(parse_int(text, 1, n_all));
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(total) * static_cast<double>(n_slots) / static_cast<double>(n_all)));
}

Result<std::vector<ReplayRow>> replay(const RouteLog& log, const ReplayGrid& grid,
                                      const ReplayOptions& options, ThreadPool& pool,
                                      const std::function<void(size_t done, size_t all)>& on_progress,
                                      std::stop_token stop) {
  for (const uint64_t budget : grid.budgets) TRY(check_budget(log, budget));
  try {
    std::vector<ReplayConfig> configs = grid.configs();
    const size_t n_rows = configs.size();
    // What the rows are compared with; asked for or not.
    for (const uint64_t budget : grid.budgets) configs.push_back({std::nullopt, budget, 0});
    std::vector<ReplayResult> results(configs.size());
    std::atomic<size_t> n_started = 0, n_done = 0;
    std::atomic<bool> out_of_memory = false;
    // One at a time and not in ranges, because one takes long.
    const auto work = [&](int thread) {
      for (size_t i; (i = n_started++) < configs.size() && !stop.stop_requested() && !out_of_memory;) {
        try {
          results[i] = simulate(log, configs[i], options);
        } catch (const std::bad_alloc&) {
          out_of_memory = true;
        }
        ++n_done;
        if (thread == 0 && on_progress) on_progress(n_done, configs.size());
      }
    };
    pool.parallel_for(pool.n_threads(), 1, [&](int64_t, int64_t, int thread) { work(thread); });
    if (on_progress) on_progress(n_done, configs.size());
    if (stop.stop_requested()) return Error{Code::kCancelled, "interrupted"};
    if (out_of_memory) return Error{Code::kOutOfMemory, "replay: no memory for a simulated cache"};

    std::vector<ReplayRow> rows(n_rows);
    for (size_t i = 0; i < n_rows; ++i) {
      rows[i].result = results[i];
      for (size_t m = n_rows; m < results.size(); ++m)
        if (configs[m].budget_bytes == configs[i].budget_bytes)
          rows[i].min_misses = results[m].counted.n_misses;
    }
    return rows;
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, "replay: no memory for the results"};
  }
}

}  // namespace forebay
