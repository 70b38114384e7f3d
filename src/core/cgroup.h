/// Limits the system puts on this process from outside: control group files, read when asked.
#pragma once

#include <cstdint>
#include <optional>

#include "core/path.h"

namespace forebay {

/// The tightest cpu.max quota from our group up to the root, in cores (1.5 = 150 ms per 100 ms).
std::optional<double> cgroup_cpu_cores();

struct CgroupMemory {
  uint64_t limit_bytes;
  uint64_t used_bytes;  // without file pages the kernel would drop
};
/// Where the system shows groups; tests have folders of their own.
struct CgroupView {
  Path membership = "/proc/self/cgroup";
  Path root = "/sys/fs/cgroup";
};
/// The tightest memory limit from our group up to the root, of version 2 (memory.max) and version 1
/// (memory.limit_in_bytes) alike.
std::optional<CgroupMemory> cgroup_memory(const CgroupView& view = {});

/// Cores this process may use: the affinity mask, and the quota rounded up. At least 1.
int n_usable_cores();

}  // namespace forebay
