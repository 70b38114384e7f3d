/// What streaming did, for people and for scripts.
#pragma once

#include <optional>
#include <string>

#include "forebay/engine.h"
#include "forebay/experts.h"

#include "cli/json_writer.h"

namespace forebay::cli {

/// "experts: 93.1 % of 480 in memory, ..."
std::string experts_line(const ExpertCacheStats& stats);

/// "plan: expected 41.2 tok/s and 93.0 % hits when warm, measured 38 and 91.5 %"
std::string plan_line(const PlanSummary& plan, const ExpertCacheStats& stats, double tokens_per_second);

/// An object: hits, misses, hit_rate, evictions, prefetched, prefetch_used, prefetch_wasted, bytes_read,
/// wait_seconds, busy_seconds, read_bytes_per_second, mean_reads (the last two while reads were under way),
/// peak_reads, peak_bytes, budget_bytes, direct_io, io.
void write_expert_stats(JsonWriter& json, const ExpertCacheStats& stats);

/// Members of --stats json that every command has: memory_bytes, reserved_bytes, ngram_bytes, "seconds" of a
/// run (waiting for the disk, computing; host, all else, where `seconds` says what the whole took), and
/// "experts" where they are streamed.
void write_engine_stats(JsonWriter& json, Engine& engine, std::optional<double> seconds = std::nullopt);

}  // namespace forebay::cli
