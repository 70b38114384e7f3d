#include "core/memory_info.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace forebay {
namespace {

TEST(MemoryInfo, AnonymousPagesShowUpWhenTouched) {
  constexpr size_t kBytes = 32 << 20;
  const ProcessMemory before = process_memory();
  void* data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  std::memset(data, 1, kBytes);
  const ProcessMemory during = process_memory();
  munmap(data, kBytes);
  const ProcessMemory after = process_memory();
  EXPECT_GE(during.anonymous, before.anonymous + kBytes * 9 / 10);
  EXPECT_LE(after.anonymous, during.anonymous - kBytes * 9 / 10);
  EXPECT_GE(during.peak, kBytes);
  EXPECT_GT(during.file, 0u) << "this program's own pages";
}

TEST(MemoryInfo, SystemFiguresAreInOrder) {
  const SystemMemory memory = system_memory();
  EXPECT_GT(memory.available, 0u);
  EXPECT_LE(memory.available, memory.total);
  EXPECT_LE(memory.usable(), memory.available);
}

TEST(MemoryInfo, UsableIsTheSmallerOfMachineAndGroup) {
  EXPECT_EQ((SystemMemory{.total = 100, .available = 60, .cgroup_limit = {}, .cgroup_used = {}}.usable()),
            60u);
  EXPECT_EQ((SystemMemory{.total = 100, .available = 60, .cgroup_limit = 50, .cgroup_used = 20}.usable()),
            30u);
  EXPECT_EQ((SystemMemory{.total = 100, .available = 60, .cgroup_limit = 90, .cgroup_used = 20}.usable()),
            60u);
  EXPECT_EQ((SystemMemory{.total = 100, .available = 60, .cgroup_limit = 50, .cgroup_used = 55}.usable()),
            0u);
}

}  // namespace
}  // namespace forebay
