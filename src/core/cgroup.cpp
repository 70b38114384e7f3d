#include "core/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <sched.h>

#include "core/function_ref.h"
#include "core/path.h"

namespace forebay {
namespace {

/// Calls visit(folder) for the group named `group` below `root` and each group above it.
void for_each_group(const Path& root, Path group, FunctionRef<void(const Path& folder)> visit) {
  while (true) {
    visit(group.empty() ? root : root / group);
    if (group.empty()) return;
    group = group.parent_path();
  }
}

/// Our group in the version 1 hierarchy that has `controller`, or in version 2, which lists none ("");
/// without the leading slash. Lines are "4:cpu,memory:/a/b" and "0::/a/b".
std::optional<Path> group_of_process(const Path& membership, std::string_view controller) {
  std::ifstream file(membership);
  std::string line;
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(":/", first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string list = "," + line.substr(first + 1, second - first - 1) + ",";
    if (list.find("," + std::string(controller) + ",") != std::string::npos)
      return Path(line.substr(second + 2));
  }
  return std::nullopt;
}

/// A number, or nothing for "max" and for a file that is not there.
std::optional<uint64_t> read_number(const Path& path) {
  std::ifstream file(path);
  uint64_t value;
  if (!(file >> value)) return std::nullopt;
  return value;
}

/// The sum of some lines of a group's memory.stat.
uint64_t sum_of_stats(const Path& folder, std::string_view key1, std::string_view key2) {
  std::ifstream file(folder / "memory.stat");
  uint64_t sum = 0;
  std::string key;
  uint64_t bytes;
  while (file >> key >> bytes)
    if (key == key1 || key == key2) sum += bytes;
  return sum;
}

/// Version 1 says "no limit" with the largest multiple of a page below 2^63.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

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
  const CgroupView view;
  const std::optional<Path> group = group_of_process(view.membership, "");
  if (!group) return tightest;
  for_each_group(view.root, *group, [&](const Path& folder) {
    std::ifstream file(folder / "cpu.max");
    double quota, period;
    if (!(file >> quota >> period) || period <= 0) return;
    const double cores = quota / period;
    tightest = std::min(tightest.value_or(cores), cores);
  });
  return tightest;
}

std::optional<CgroupMemory> cgroup_memory(const CgroupView& view) {
  std::optional<CgroupMemory> tightest;
  const auto consider = [&](std::optional<uint64_t> limit, std::optional<uint64_t> current,
                            uint64_t droppable) {
    if (!limit || *limit >= kNoLimit || (tightest && tightest->limit_bytes <= *limit)) return;
    const uint64_t used = current.value_or(0);
    tightest = CgroupMemory{*limit, used - std::min(used, droppable)};
  };
  if (const std::optional<Path> group = group_of_process(view.membership, ""))
    for_each_group(view.root, *group, [&](const Path& folder) {
      consider(read_number(folder / "memory.max"), read_number(folder / "memory.current"),
               sum_of_stats(folder, "active_file", "inactive_file"));
    });
  if (const std::optional<Path> group = group_of_process(view.membership, "memory"))
    for_each_group(view.root / "memory", *group, [&](const Path& folder) {
      consider(read_number(folder / "memory.limit_in_bytes"), read_number(folder / "memory.usage_in_bytes"),
               sum_of_stats(folder, "total_active_file", "total_inactive_file"));
    });
  return tightest;
}

int n_usable_cores() {
  int n = n_cores_in_affinity_mask();
  if (const auto quota = cgroup_cpu_cores()) n = std::min(n, static_cast<int>(std::ceil(*quota)));
  return std::max(n, 1);
}

}  // namespace forebay
