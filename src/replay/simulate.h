/// One cache over one trace.
#pragma once

#include <cstdint>
#include <optional>

#include "forebay/experts.h"

#include "kernels/router.h"
#include "replay/route_log.h"

namespace forebay {

/// What a miss and a use cost. Reads of a request run together; while they do, the experts that are in memory
/// are computed, which costs reading them from memory, and then those that came.
struct ReplayCost {
  double disk_bytes_per_second = 3e9;
  double disk_latency_seconds = 1e-4;  // once per request that misses
  double memory_bytes_per_second = 20e9;
};

enum class ReplayPhases { kAll, kPrefill, kDecode };  // drafts belong to decode

struct ReplayConfig {
  std::optional<EvictionPolicy> policy;  // none: Belady's MIN, which knows the future
  uint64_t budget_bytes = 0;             // of all slots
  double half_life = 2000;               // requests
  // Lambda 0 routes exactly. Not for MIN: what is asked for next would depend on what is in memory.
  RouteBias bias = {};
  RouteBias prompt_bias = {.lambda = 0, .protect = 4};  // of prompts but for their last rows
  // Of the budget, for experts that are read ahead. Not for MIN.
  uint64_t shelf_bytes = 0;
};

/// How good guesses are of what the next block will want. A trace has the choices, not the guesses.
struct ReplayGuess {
  double right = 0.97;  // share; the others name an expert that the router ranked a little too low
};

struct ReplayOptions {
  uint64_t warm_up_tokens = 0;               // simulated, but counted apart
  ReplayPhases phases = ReplayPhases::kAll;  // which are counted; all are simulated
  ReplayCost cost = {};
  ReplayGuess guess = {};
};

struct ReplayCounts {
  uint64_t n_tokens = 0;
  uint64_t n_requests = 0;
  uint64_t n_uses = 0;        // an expert counts once per request
  uint64_t n_misses = 0;      // waited for; forced ones among them
  uint64_t n_cold = 0;        // misses of experts that were never in memory before: any cache has them
  uint64_t n_forced = 0;      // a pruned model's row had fewer candidates than experts to use
  uint64_t n_swapped = 0;     // chosen for being in memory, instead of the router's choice
  uint64_t n_ahead = 0;       // read ahead
  uint64_t n_ahead_used = 0;  // of those, asked for in time; neither hits nor misses
  uint64_t bytes_read = 0;    // ahead or not
  double seconds = 0;         // by ReplayCost
};

struct ReplayResult {
  ReplayConfig config;
  ReplayCounts warm_up;
  ReplayCounts counted;
};

/// Experts of the block of request `r` that would be read ahead while the block before it runs, most wanted
/// first, as a layer does it: of few rows the first three choices, of many rows all. `votes` has room for an
/// entry per expert, all zero between calls.
void guess_experts(const RouteLog& log, size_t r, const ReplayGuess& guess, std::vector<uint32_t>& votes,
                   std::vector<uint16_t>& experts);

/// kInvalidArgument when one row's experts do not fit into the budget, as the cache itself says.
Result<void> check_budget(const RouteLog& log, uint64_t budget_bytes);

/// The budget has been checked. Thread-safe: shares the log, nothing else. Throws std::bad_alloc.
ReplayResult simulate(const RouteLog& log, const ReplayConfig& config, const ReplayOptions& options);

}  // namespace forebay
