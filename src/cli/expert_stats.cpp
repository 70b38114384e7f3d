#include "cli/expert_stats.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/format.h"
#include "core/memory_info.h"

namespace forebay::cli {
namespace {

uint64_t n_requested(const ExpertCacheStats& s) {
  return s.n_hits + s.n_misses + s.n_prefetch_used;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

double read_rate(const ExpertCacheStats& s) {
  return s.busy_seconds > 0 ? static_cast<double>(s.bytes_read) / s.busy_seconds : 0.0;
}

}  // namespace

std::string experts_line(const ExpertCacheStats& s) {
  std::string ahead;
  if (s.n_prefetched > 0)
    ahead = fmt::format(", {} of {} read ahead were used", s.n_prefetch_used, s.n_prefetched);
  return fmt::format("experts: {:.1f} % of {} in memory{}, {} read{} at {}/s, waited {:.2f} s, {} of {} used",
                     100 * share(s.n_hits, n_requested(s)), n_requested(s), ahead, human_bytes(s.bytes_read),
                     s.direct_io ? " past the page cache" : "",
                     human_bytes(static_cast<uint64_t>(read_rate(s))), s.wait_seconds,
                     human_bytes(s.peak_bytes), human_bytes(s.budget_bytes));
}

std::string plan_line(const PlanSummary& plan, const ExpertCacheStats& stats, double tokens_per_second) {
  return fmt::format("plan: expected {:.3g} tok/s and {:.1f} % hits when warm, measured {:.3g} and {:.1f} %",
                     plan.tokens_per_second, 100 * plan.hit_rate, tokens_per_second,
                     100 * share(stats.n_hits, n_requested(stats)));
}

void write_expert_stats(JsonWriter& json, const ExpertCacheStats& s) {
  json.begin_object();
  json.key("hits").integer(s.n_hits);
  json.key("misses").integer(s.n_misses);
  json.key("hit_rate").number(share(s.n_hits, n_requested(s)));
  json.key("evictions").integer(s.n_evictions);
  json.key("prefetched").integer(s.n_prefetched);
  json.key("prefetch_used").integer(s.n_prefetch_used);
  json.key("prefetch_wasted").integer(s.n_prefetched - std::min(s.n_prefetched, s.n_prefetch_used));
  json.key("bytes_read").integer(s.bytes_read);
  json.key("wait_seconds").number(s.wait_seconds);
  json.key("busy_seconds").number(s.busy_seconds);
  json.key("read_bytes_per_second").number(read_rate(s));
  json.key("mean_reads").number(s.busy_seconds > 0 ? s.read_seconds / s.busy_seconds : 0.0);
  json.key("peak_reads").integer(s.peak_reads);
  json.key("peak_bytes").integer(s.peak_bytes);
  json.key("budget_bytes").integer(s.budget_bytes);
  json.key("direct_io").boolean(s.direct_io);
  json.key("io").string(name_of(s.engine));
  json.end_object();
}

void write_engine_stats(JsonWriter& json, Engine& engine, std::optional<double> seconds) {
  json.key("memory_bytes").integer(process_memory().anonymous);
  json.key("reserved_bytes").integer(engine.peak_reserved_bytes());
  json.key("ngram_bytes").integer(engine.ngram_bytes());
  const ModelInfo& info = engine.info();
  json.key("trunk").begin_object();
  json.key("placement").string(info.trunk_copy_bytes > 0 ? "copy" : "map");
  json.key("copied_bytes").integer(info.trunk_copy_bytes).key("seconds").number(info.trunk_copy_seconds);
  json.end_object();
  const std::optional<ExpertCacheStats> experts = engine.expert_stats();
  const double forward = engine.forward_seconds(), wait = experts ? experts->wait_seconds : 0.0;
  json.key("seconds").begin_object();
  json.key("waiting").number(wait).key("computing").number(std::max(0.0, forward - wait));
  if (seconds) json.key("host").number(std::max(0.0, *seconds - forward));
  json.end_object();
  if (!experts) return;
  json.key("experts");
  write_expert_stats(json, *experts);
}

}  // namespace forebay::cli
