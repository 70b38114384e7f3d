#include "core/memory_info.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/cgroup.h"

namespace forebay {
namespace {

/// A file of lines such as "RssAnon:     1234 kB".
class KilobyteTable {
 public:
  explicit KilobyteTable(const char* path) : file_(path) {}

  /// Bytes under `key`; 0 when it is not there.
  uint64_t operator[](const std::string& key) {
    file_.clear();
    file_.seekg(0);
    std::string line;
    while (std::getline(file_, line))
      if (line.starts_with(key + ":"))
        return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
    return 0;
  }

 private:
  std::ifstream file_;
};

}  // namespace

uint64_t SystemMemory::usable() const {
  if (!cgroup_limit) return available;
  const uint64_t used = cgroup_used.value_or(0);
  return std::min(available, *cgroup_limit > used ? *cgroup_limit - used : 0);
}

ProcessMemory process_memory() {
  KilobyteTable status("/proc/self/status");
  return {.anonymous = status["RssAnon"],
          .file = status["RssFile"],
          .shared = status["RssShmem"],
          .locked = status["VmLck"],
          .peak = status["VmHWM"]};
}

SystemMemory system_memory() {
  KilobyteTable info("/proc/meminfo");
  SystemMemory memory{
      .total = info["MemTotal"], .available = info["MemAvailable"], .cgroup_limit = {}, .cgroup_used = {}};
  if (const auto group = cgroup_memory()) {
    memory.cgroup_limit = group->limit_bytes;
    memory.cgroup_used = group->used_bytes;
  }
  return memory;
}

}  // namespace forebay
