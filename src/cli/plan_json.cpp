#include "cli/plan_json.h"

namespace forebay::cli {

void write_rates(JsonWriter& json, const MachineRates& rates) {
  json.key("disk_bytes_per_second").number(rates.disk).key("disk_source").string(rates.disk_source);
  json.key("memory_bytes_per_second").number(rates.memory).key("memory_source").string(rates.memory_source);
  json.key("weights_bytes_per_second").begin_object();
  for (const auto& [type, rate] : rates.kernels) json.key(name_of(type)).number(rate);
  json.end_object();
}

void write_memory(JsonWriter& json, const SystemMemory& memory) {
  const SafeLine line = safe_line(memory);
  const auto optional = [&](std::string_view name, const std::optional<uint64_t>& value) {
    json.key(name);
    value ? json.integer(*value) : json.null();
  };
  json.begin_object();
  json.key("total").integer(memory.total).key("available").integer(memory.available);
  json.key("usable").integer(line.usable_bytes).key("margin").integer(line.margin_bytes);
  optional("cgroup_limit", memory.cgroup_limit);
  optional("cgroup_used", memory.cgroup_used);
  json.end_object();
}

void write_plan(JsonWriter& json, const MemoryPlan& plan) {
  const Speed& s = plan.speed;
  json.key("model").string(plan.model);
  json.key("budget_bytes").integer(plan.budget.bytes).key("budget_reason").string(plan.budget.reason);
  json.key("context").integer(plan.request.context).key("chunk").integer(plan.request.chunk);
  json.key("items").begin_object();
  for (const PlanItem& item : plan.items) json.key(item.name).integer(item.bytes);
  json.end_object();
  json.key("arena_bytes").integer(plan.arena_bytes);
  json.key("shelf_bytes").integer(plan.shelf_bytes);
  json.key("least_arena_bytes").integer(plan.least_arena_bytes);
  json.key("all_experts_bytes").integer(plan.all_experts_bytes);
  json.key("sum_bytes").integer(plan.sum_bytes());
  json.key("program_bytes").integer(plan.program_bytes);
  json.key("ngram_bytes").integer(plan.ngram_bytes);
  json.key("all_resident").boolean(plan.all_resident());
  json.key("resident_share").number(s.resident_share);
  json.key("hit_rate").number(s.hit_rate).key("hit_source").string(plan.hit_source);
  json.key("cold_bytes_per_token").integer(s.cold_bytes);
  json.key("read_bytes_per_token").integer(s.disk_bytes);
  json.key("trunk_seconds").number(s.trunk_seconds);
  json.key("expert_seconds").number(s.expert_seconds);
  json.key("disk_seconds").number(s.disk_seconds);
  json.key("seconds_per_token").number(s.seconds_per_token());
  json.key("tokens_per_second").number(s.tokens_per_second());
  json.key("bound").string(s.bound());
  json.key("rates").begin_object();
  write_rates(json, plan.rates);
  json.end_object();
}

}  // namespace forebay::cli
