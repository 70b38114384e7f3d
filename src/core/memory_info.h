/// What the machine has and what this process takes of it, from /proc and the control group.
#pragma once

#include <cstdint>
#include <optional>

namespace forebay {

/// All in bytes, physical pages.
struct ProcessMemory {
  uint64_t anonymous = 0;  // heap, stacks, buffers: ours until freed
  uint64_t file = 0;       // mapped files: the system may drop them at any time
  uint64_t shared = 0;     // shared memory
  uint64_t locked = 0;     // pinned by mlock, of any kind above
  uint64_t peak = 0;       // largest sum of the first three so far
};

struct SystemMemory {
  uint64_t total = 0;
  uint64_t available = 0;                // without swapping, as the kernel estimates
  std::optional<uint64_t> cgroup_limit;  // of the tightest group above us
  std::optional<uint64_t> cgroup_used;   // in that group, without droppable file pages

  /// What a new allocation can count on: the smaller of what the machine and the group have left.
  uint64_t usable() const;
};

/// Zeros where the system does not say.
ProcessMemory process_memory();
SystemMemory system_memory();

}  // namespace forebay
