#include "core/cgroup.h"

#include <fstream>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace forebay {
namespace {

/// A tree of groups as the system shows it.
class Groups {
 public:
  Groups() { membership_ = "1:cpu:/elsewhere\n"; }

  void member(const std::string& line) { membership_ += line + "\n"; }
  void file(const std::string& name, const std::string& content) {
    const Path path = folder_ / "cgroup" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content << "\n";
  }
  std::optional<CgroupMemory> memory() {
    std::ofstream(folder_ / "membership") << membership_;
    return cgroup_memory({.membership = folder_ / "membership", .root = folder_ / "cgroup"});
  }

 private:
  TemporaryDirectory folder_;
  std::string membership_;
};

TEST(Cgroup, NoGroupsNoLimit) {
  EXPECT_FALSE(Groups().memory().has_value());
  Groups groups;
  groups.member("0::/a/b");
  groups.file("a/b/memory.max", "max");
  EXPECT_FALSE(groups.memory().has_value());
}

TEST(Cgroup, TheTightestGroupAboveUsCounts) {
  Groups groups;
  groups.member("0::/a/b");
  groups.file("a/b/memory.max", "5000");
  groups.file("a/b/memory.current", "100");
  groups.file("a/memory.max", "3000");
  groups.file("a/memory.current", "1000");
  groups.file("a/memory.stat", "anon 500\ninactive_file 300\nactive_file 200");
  groups.file("a/c/memory.max", "10");  // another's
  const std::optional<CgroupMemory> memory = groups.memory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->limit_bytes, 3000u);
  EXPECT_EQ(memory->used_bytes, 500u);
}

TEST(Cgroup, VersionOneIsReadToo) {
  Groups groups;
  groups.member("4:cpuacct,memory:/a");
  groups.member("0::/");
  groups.file("memory/memory.limit_in_bytes", "9223372036854771712");
  groups.file("memory/a/memory.limit_in_bytes", "7000");
  groups.file("memory/a/memory.usage_in_bytes", "900");
  groups.file("memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50");
  const std::optional<CgroupMemory> memory = groups.memory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->limit_bytes, 7000u);
  EXPECT_EQ(memory->used_bytes, 750u);
}

TEST(Cgroup, VersionOneWithoutALimitIsNone) {
  Groups groups;
  groups.member("4:memory:/");
  groups.file("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(groups.memory().has_value());
}

}  // namespace
}  // namespace forebay
