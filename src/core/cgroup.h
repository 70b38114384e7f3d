/// Limits the system puts on this process from outside: control group v2 files, read when asked.
#pragma once

#include <cstdint>
#include <optional>

namespace forebay {

/// The tightest cpu.max quota from our group up to the root, in cores (1.5 = 150 ms per 100 ms).
std::optional<double> cgroup_cpu_cores();

struct CgroupMemory {
  uint64_t limit_bytes;
  uint64_t used_bytes;  // without file pages the kernel would drop
};
/// The tightest memory.max from our group up to the root.
std::optional<CgroupMemory> cgroup_memory();

/// Cores this process may use: the affinity mask, and the quota rounded up. At least 1.
int n_usable_cores();

}  // namespace forebay
