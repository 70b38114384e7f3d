#include "plan/budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/format.h"

namespace forebay {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace

SafeLine safe_line(const SystemMemory& memory) {
  const uint64_t usable = memory.usable();
  return {usable, std::min(usable / 2, std::max(usable / 16, 256 * kMiB))};
}

std::string describe(const SystemMemory& memory) {
  std::string text =
      fmt::format("{}, {} available", human_bytes(memory.total), human_bytes(memory.available));
  if (memory.cgroup_limit)
    text += fmt::format(", control group limit {} with {} used", human_bytes(*memory.cgroup_limit),
                        human_bytes(memory.cgroup_used.value_or(0)));
  return text;
}

std::string as_flag(uint64_t bytes, bool round_up) {
  return fmt::format("{}M", (bytes + (round_up ? kMiB - 1 : 0)) / kMiB);
}

Result<Budget> choose_budget(uint64_t asked, const SystemMemory& memory) {
  const SafeLine line = safe_line(memory);
  if (line.usable_bytes == 0 && memory.total == 0) {
    // The system does not say: what was asked for is the user's word.
    if (asked > 0) return Budget{asked, "given"};
    return Error{Code::kUnsupported,
                 "budget: the system does not say how much memory is free; give --budget"};
  }
  if (asked == 0)
    return Budget{line.bytes(),
                  fmt::format("what is free: {} less {} of margin", human_bytes(line.usable_bytes),
                              human_bytes(line.margin_bytes)),
                  line.bytes()};
  if (asked > line.bytes())
    return Error{
        Code::kOutOfMemory,
        fmt::format(
            "budget: {} asked for, of {} usable {} can be planned with (machine of {}); the largest that "
            "fits is --budget {}",
            human_bytes(asked), human_bytes(line.usable_bytes), human_bytes(line.bytes()), describe(memory),
            as_flag(line.bytes(), /*round_up=*/false))};
  return Budget{asked, fmt::format("given, of {} usable", human_bytes(line.usable_bytes)), line.bytes()};
}

SystemMemory simulated_memory(uint64_t total, uint64_t used) {
  return {.total = total, .available = total - std::min(used, total), .cgroup_limit = {}, .cgroup_used = {}};
}

uint64_t usual_use(uint64_t total) {
  return std::min(total / 4, 2 * kGiB);
}

}  // namespace forebay
