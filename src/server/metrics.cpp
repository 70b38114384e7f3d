#include "server/metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/memory_info.h"

namespace forebay {
namespace {

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

Json experts_json(const ExpertCacheStats& s) {
  const auto n = static_cast<double>(s.n_hits + s.n_misses + s.n_prefetch_used);
  return {{"hits", s.n_hits},
          {"misses", s.n_misses},
          {"prefetched", s.n_prefetched},
          {"prefetch_used", s.n_prefetch_used},
          {"hit_rate", share(static_cast<double>(s.n_hits), n)},
          {"evictions", s.n_evictions},
          {"bytes_read", s.bytes_read},
          {"wait_seconds", s.wait_seconds},
          {"busy_seconds", s.busy_seconds},
          {"resident_bytes", s.resident_bytes},
          {"budget_bytes", s.budget_bytes}};
}

Json cache_json(const CacheDirStats& s) {
  return {{"files", s.n_files},   {"bytes", s.bytes},           {"saved", s.n_saved},
          {"pruned", s.n_pruned}, {"discarded", s.n_discarded}, {"not_saved", s.n_not_saved}};
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

std::string prometheus_text(const SchedulerStatus& status) {
  const SchedulerStats& s = status.stats;
  std::string out;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const auto&... rows) {
    out += fmt::format("# HELP forebay_{} {}\n# TYPE forebay_{} {}\n", name, help, name, type);
    ((out += fmt::format("forebay_{}{} {}\n", name, rows.first, rows.second)), ...);
  };
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    add(name, type, help, std::pair("", value));
  };
  add("answers_total", "counter", "Answers that ended, by how.",
      std::pair("{outcome=\"finished\"}", s.n_finished), std::pair("{outcome=\"cancelled\"}", s.n_cancelled),
      std::pair("{outcome=\"failed\"}", s.n_failed));
  one("prompt_tokens_total", "counter", "Prompt tokens of answers that began.", s.n_prompt);
  one("reused_tokens_total", "counter", "Of those, already in a state.", s.n_reused);
  one("loaded_tokens_total", "counter", "Of the reused ones, from files.", s.n_loaded);
  one("prefilled_tokens_total", "counter", "Prompt tokens computed.", s.n_prefilled);
  one("generated_tokens_total", "counter", "Tokens of answers.", s.n_generated);
  one("windows_total", "counter", "Forward passes.", s.n_windows);
  one("window_rows_total", "counter", "Tokens in them.", s.n_window_rows);
  one("prompt_seconds_total", "counter", "Time in passes with prompt tokens.", s.prompt_seconds);
  one("decode_seconds_total", "counter", "Time in passes without.", s.decode_seconds);
  one("queue_length", "gauge", "Answers that wait.", status.n_queued);
  one("active", "gauge", "Answers that are made.",
      std::count_if(status.slots.begin(), status.slots.end(),
                    [](const SlotStatus& slot) { return slot.phase != Phase::kEnded; }));
  one("busy_seconds", "gauge", "How long the engine has been at what it does now: a pass, a file.",
      status.busy_seconds);
  add("first_token_seconds", "gauge", "From request to first token, over the last answers.",
      std::pair("{quantile=\"0.5\"}", quantile(s.first_token_seconds, 0.5)),
      std::pair("{quantile=\"0.99\"}", quantile(s.first_token_seconds, 0.99)));
  one("memory_bytes", "gauge", "Memory that is this process's own.", process_memory().anonymous);
  one("reserved_bytes", "gauge", "States, scratch and copies.", status.reserved_bytes);
  if (status.experts) {
    add("experts_total", "counter", "Experts asked for, by where they were.",
        std::pair("{where=\"memory\"}", status.experts->n_hits),
        std::pair("{where=\"disk\"}", status.experts->n_misses),
        std::pair("{where=\"read_ahead\"}", status.experts->n_prefetch_used));
    one("expert_bytes_read_total", "counter", "Bytes of experts read.", status.experts->bytes_read);
    one("expert_wait_seconds_total", "counter", "Time with nothing to compute.",
        status.experts->wait_seconds);
    one("expert_resident_bytes", "gauge", "Experts in memory.", status.experts->resident_bytes);
  }
  if (status.cache) {
    one("cache_files", "gauge", "Files in the cache directory.", status.cache->n_files);
    one("cache_bytes", "gauge", "Their bytes.", status.cache->bytes);
    add("cache_files_total", "counter", "What became of files of the cache directory.",
        std::pair("{event=\"saved\"}", status.cache->n_saved),
        std::pair("{event=\"pruned\"}", status.cache->n_pruned),
        std::pair("{event=\"discarded\"}", status.cache->n_discarded),
        std::pair("{event=\"not_saved\"}", status.cache->n_not_saved));
  }
  return out;
}

Json status_json(const SchedulerStatus& status, const ModelInfo& model,
                 const std::optional<PlanSummary>& plan) {
  const SchedulerStats& s = status.stats;
  Json slots = Json::array();
  for (const SlotStatus& slot : status.slots)
    slots.push_back({{"phase", slot.phase == Phase::kEnded ? "idle" : name_of(slot.phase)},
                     {"tokens", slot.n_tokens},
                     {"prompt_tokens", slot.n_prompt},
                     {"prompt_done", slot.n_prompt_done},
                     {"generated", slot.n_generated},
                     {"reuse", slot.why}});
  return {
      {"model",
       {{"name", model.name},
        {"architecture", model.architecture},
        {"file_bytes", model.file_bytes},
        {"context", model.context},
        {"chunk", model.chunk},
        {"threads", model.threads},
        {"trunk", model.trunk_copy_bytes > 0 ? "copy" : "map"},
        {"experts", model.experts ? Json(name_of(*model.experts)) : Json()}}},
      {"plan", plan ? Json{{"text", plan->text},
                           {"tokens_per_second", plan->tokens_per_second},
                           {"hit_rate", plan->hit_rate}}
                    : Json()},
      {"queue", status.n_queued},
      {"slots", std::move(slots)},
      {"answers",
       {{"submitted", s.n_submitted},
        {"finished", s.n_finished},
        {"cancelled", s.n_cancelled},
        {"failed", s.n_failed}}},
      {"tokens",
       {{"prompt", s.n_prompt},
        {"reused", s.n_reused},
        {"loaded", s.n_loaded},
        {"prefilled", s.n_prefilled},
        {"generated", s.n_generated}}},
      {"windows",
       {{"count", s.n_windows},
        {"rows", s.n_window_rows},
        {"now_seconds", status.busy_seconds},
        {"now", status.busy_with}}},
      {"seconds", {{"prompt", s.prompt_seconds}, {"decode", s.decode_seconds}}},
      {"first_token_seconds",
       {{"p50", quantile(s.first_token_seconds, 0.5)}, {"p99", quantile(s.first_token_seconds, 0.99)}}},
      {"experts", status.experts ? experts_json(*status.experts) : Json()},
      {"cache", status.cache ? cache_json(*status.cache) : Json()},
      {"memory", {{"process_bytes", process_memory().anonymous}, {"reserved_bytes", status.reserved_bytes}}}};
}

}  // namespace forebay
