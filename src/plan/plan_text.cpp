#include "plan/plan_text.h"

#include <fmt/format.h>

#include "core/format.h"

namespace forebay {
namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string rate(double bytes_per_second) {
  return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
}

std::string label(std::string name) {
  for (char& c : name)
    if (c == '_') c = ' ';
  return name;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", 1000 * seconds);
}

/// Why the arena gives this many hits.
std::string experts_reason(const MemoryPlan& plan) {
  if (plan.all_resident()) return fmt::format("all {} fit", human_bytes(plan.all_experts_bytes));
  std::string text =
      fmt::format("{} of {}", percent(plan.speed.resident_share), human_bytes(plan.all_experts_bytes));
  if (plan.shelf_bytes > 0) text += fmt::format(", {} for reading ahead", human_bytes(plan.shelf_bytes));
  return text + fmt::format("; at least {}", human_bytes(plan.least_arena_bytes));
}

}  // namespace

std::string speed_line(const Speed& s) {
  std::string text = fmt::format("{:.3g} tok/s: {} a token, trunk {}", s.tokens_per_second(),
                                 milliseconds(s.seconds_per_token()), milliseconds(s.trunk_seconds));
  if (s.expert_bytes == 0) return text;
  if (s.disk_seconds >= s.expert_seconds)
    return text + fmt::format(" + disk {} (computing experts takes {} of them)", milliseconds(s.disk_seconds),
                              milliseconds(s.expert_seconds));
  return text + fmt::format(" + experts {} (disk {} of them)", milliseconds(s.expert_seconds),
                            milliseconds(s.disk_seconds));
}

std::string plan_table(const MemoryPlan& plan) {
  const Speed& s = plan.speed;
  std::string text =
      fmt::format("{}: budget {}, {}\n", plan.model, human_bytes(plan.budget.bytes), plan.budget.reason);
  const auto row = [&](std::string_view name, std::string_view value, std::string_view why) {
    text += fmt::format("  {:<14} {:>12}   {}\n", name, value, why);
  };
  text += "\nMemory\n";
  for (const PlanItem& item : plan.items) row(label(item.name), human_bytes(item.bytes), item.why);
  if (plan.all_experts_bytes > 0) row("experts", human_bytes(plan.arena_bytes), experts_reason(plan));
  row("sum", human_bytes(plan.sum_bytes()),
      plan.sum_bytes() < plan.budget.bytes
          ? fmt::format("{} of the budget stay free", human_bytes(plan.budget.bytes - plan.sum_bytes()))
          : "all of the budget");
  row("beside it", human_bytes(plan.program_bytes), "code, stacks, vocabulary; estimated");
  if (plan.ngram_bytes > 0)
    row("on disk", human_bytes(plan.ngram_bytes), "the n-gram table: a few rows per token are read");

  text += "\nDecoding, expected\n";
  if (plan.all_experts_bytes > 0) {
    row("hits", percent(s.hit_rate),
        plan.all_resident() ? "everything is in memory once it was used" : plan.hit_source);
    row("read", human_bytes(s.disk_bytes),
        fmt::format("per token, of {} when nothing is in memory", human_bytes(s.cold_bytes)));
    row("disk", milliseconds(s.disk_seconds),
        fmt::format("at {} ({})", rate(plan.rates.disk), plan.rates.disk_source));
    row("experts", milliseconds(s.expert_seconds),
        fmt::format("to compute {} while others are read", human_bytes(s.expert_bytes)));
  }
  row("trunk", milliseconds(s.trunk_seconds),
      fmt::format("to compute {} with the state; memory {} ({})", human_bytes(s.trunk_bytes),
                  rate(plan.rates.memory), plan.rates.memory_source));
  row("per token", milliseconds(s.seconds_per_token()),
      plan.all_experts_bytes > 0
          ? "trunk + the longer of disk and experts: a block reads after its router ran"
          : "the trunk");
  row("speed", fmt::format("{:.3g} tok/s", s.tokens_per_second()), fmt::format("bound by the {}", s.bound()));
  return text;
}

std::string plan_lines(const MemoryPlan& plan) {
  const Speed& s = plan.speed;
  const uint64_t named = plan.bytes_of("trunk") + plan.bytes_of("state") + plan.bytes_of("scratch");
  std::string text =
      fmt::format("plan: budget {} ({})\n", human_bytes(plan.budget.bytes), plan.budget.reason);
  text += fmt::format("  trunk {}, state {} for {} tokens, scratch {} for {} rows, other {}\n",
                      human_bytes(plan.bytes_of("trunk")), human_bytes(plan.bytes_of("state")),
                      plan.request.context, human_bytes(plan.bytes_of("scratch")), plan.request.chunk,
                      human_bytes(plan.fixed_bytes() - named));
  if (plan.all_experts_bytes > 0) {
    text += fmt::format("  experts {}: {}\n", human_bytes(plan.arena_bytes), experts_reason(plan));
    text += fmt::format("  expected hits {}, {} read per token at {} ({})\n", percent(s.hit_rate),
                        human_bytes(s.disk_bytes), rate(plan.rates.disk), plan.rates.disk_source);
  }
  if (plan.ngram_bytes > 0)
    text += fmt::format("  n-gram table {} on disk, {} of its rows in memory\n",
                        human_bytes(plan.ngram_bytes), human_bytes(plan.bytes_of("ngram_rows")));
  return text + fmt::format("  expected {}\n", speed_line(s));
}

}  // namespace forebay
