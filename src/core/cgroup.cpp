#include "core/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#include <sched.h>

#include "core/function_ref.h"
#include "core/path.h"

namespace forebay {
namespace {

/// Calls visit(folder) for our control group and each group above it.
void for_each_group(FunctionRef<void(const Path& folder)> visit) {
  const Path root = "/sys/fs/cgroup";
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::/")) continue;  // version 1 hierarchies
    Path group = line.substr(4);
    while (true) {
      visit(group.empty() ? root : root / group);
      if (group.empty()) return;
      group = group.parent_path();
    }
  }
}

/// A number, or nothing for "max" and for a file that is not there.
std::optional<uint64_t> read_number(const Path& path) {
  std::ifstream file(path);
  uint64_t value;
  if (!(file >> value)) return std::nullopt;
  return value;
}

/// Bytes of page cache counted in a group's memory.current.
uint64_t droppable_file_bytes(const Path& folder) {
  std::ifstream file(folder / "memory.stat");
  uint64_t sum = 0;
  std::string key;
  uint64_t bytes;
  while (file >> key >> bytes)
    if (key == "active_file" || key == "inactive_file") sum += bytes;
  return sum;
}

int n_cores_in_affinity_mask() {
  // A mask smaller than the kernel's is refused with EINVAL: grow until it fits.
  for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 2) {
    cpu_set_t* mask = CPU_ALLOC(n_cpus);
    if (mask == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(n_cpus);
    const bool known = sched_getaffinity(0, size, mask) == 0;
    const int count = known ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (known) return count;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<double> cgroup_cpu_cores() {
  std::optional<double> tightest;
  for_each_group([&](const Path& folder) {
    std::ifstream file(folder / "cpu.max");
    double quota, period;
    if (!(file >> quota >> period) || period <= 0) return;
    const double cores = quota / period;
    tightest = std::min(tightest.value_or(cores), cores);
  });
  return tightest;
}

std::optional<CgroupMemory> cgroup_memory() {
  std::optional<CgroupMemory> tightest;
  for_each_group([&](const Path& folder) {
    const auto limit = read_number(folder / "memory.max");
    if (!limit || (tightest && tightest->limit_bytes <= *limit)) return;
    const uint64_t current = read_number(folder / "memory.current").value_or(0);
    tightest = CgroupMemory{*limit, current - std::min(current, droppable_file_bytes(folder))};
  });
  return tightest;
}

int n_usable_cores() {
  int n = n_cores_in_affinity_mask();
  if (const auto quota = cgroup_cpu_cores()) n = std::min(n, static_cast<int>(std::ceil(*quota)));
  return std::max(n, 1);
}

}  // namespace forebay
