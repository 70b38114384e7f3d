/// Where a mixture's experts live, and what that costs. No choice here changes a bit of the logits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "forebay/io.h"

namespace forebay {

enum class ExpertPlacement {
  kMapped,    // in the mapped file: the system decides what is in memory
  kResident,  // read into memory as they are used, and kept
  kStreamed,  // under a byte budget, read from the file when missed
};

/// Which expert leaves when room is needed.
enum class EvictionPolicy {
  kDecay,     // the one of least use, where a use counts half after some thousand requests
  kLru,       // the one used longest ago
  kLfu,       // the one used least often
  kEma,       // the one to which the router gave least probability of late, chosen or not
  kNearPick,  // as kDecay, where having almost been chosen counts an eighth of a use
  kInverse,   // the one that ranked worst with the router of late: 1 / rank, averaged as in kEma
};

// "mmap", "resident", "stream"; "decay", "lru", "lfu", "ema", "near-pick", "inverse".
std::string_view name_of(ExpertPlacement placement);
std::string_view name_of(EvictionPolicy policy);
std::optional<ExpertPlacement> expert_placement_from_name(std::string_view name);
std::optional<EvictionPolicy> eviction_policy_from_name(std::string_view name);

struct ExpertCacheStats {
  uint64_t n_hits = 0;
  uint64_t n_misses = 0;  // read because they were asked for
  uint64_t n_evictions = 0;
  uint64_t n_prefetched = 0;     // read ahead
  uint64_t n_prefetch_used = 0;  // of those, asked for in time; neither hits nor misses
  uint64_t bytes_read = 0;       // of experts, page rounding not counted
  double wait_seconds = 0;       // the engine had nothing to compute
  double busy_seconds = 0;       // reads were under way
  double read_seconds = 0;  // sum over reads, as long as each was under way: over busy_seconds, how many at
                            // once
  uint64_t peak_reads = 0;  // experts that were being read at one moment
  uint64_t resident_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t budget_bytes = 0;
  bool direct_io = false;  // reads go past the page cache
  ReadEngine engine = ReadEngine::kAuto;
};

}  // namespace forebay
