/// What streaming did, for people and for scripts.
#pragma once

#include <string>

#include "forebay/experts.h"

#include "cli/json_writer.h"

namespace forebay::cli {

/// "experts: 93.1 % of 480 in memory, ..."
std::string experts_line(const ExpertCacheStats& stats);

/// An object: hits, misses, hit_rate, evictions, prefetched, prefetch_used, bytes_read, wait_seconds,
/// busy_seconds, read_bytes_per_second (while reads were under way), peak_bytes, budget_bytes, direct_io, io.
void write_expert_stats(JsonWriter& json, const ExpertCacheStats& stats);

}  // namespace forebay::cli
