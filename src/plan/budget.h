/// How much memory a plan may fill: what was asked for, or what is free; never more than is safe.
#pragma once

#include <cstdint>
#include <string>

#include "forebay/result.h"

#include "core/memory_info.h"

namespace forebay {

/// What can be planned for on a machine. A margin stays free: the kernel's estimate is one, thread stacks and
/// page tables are in no plan, and reading a file wants some page cache.
struct SafeLine {
  uint64_t usable_bytes = 0;  // SystemMemory::usable()
  uint64_t margin_bytes = 0;  // a sixteenth, at least 256 MiB, at most half

  uint64_t bytes() const { return usable_bytes - margin_bytes; }
};
SafeLine safe_line(const SystemMemory& memory);

struct Budget {
  uint64_t bytes = 0;
  std::string reason;                   // "given", "what is free: 21.2 GiB less 1.33 GiB of margin"
  uint64_t largest_bytes = UINT64_MAX;  // that could be asked for on this machine
};

/// asked_bytes 0: the safe line.
/// Errors: kOutOfMemory when more was asked for than is safe, with the largest that is; kUnsupported when
/// nothing was asked for and the system does not say what is free.
Result<Budget> choose_budget(uint64_t asked_bytes, const SystemMemory& memory);

/// A machine with this much memory, of which the system and other programs hold used_bytes.
SystemMemory simulated_memory(uint64_t total_bytes, uint64_t used_bytes);
/// What an idle desktop holds: 2 GiB, on small machines a quarter.
uint64_t usual_use(uint64_t total_bytes);

/// "23.5 GiB, 21.2 GiB available", with the control group's limit and use where there is one.
std::string describe(const SystemMemory& memory);
/// "6905M": as --budget takes it, never more than `bytes` (never less, with round_up).
std::string as_flag(uint64_t bytes, bool round_up);

}  // namespace forebay
