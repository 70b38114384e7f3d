// What may be planned with: what the machine and its groups leave, less a margin.
#include "plan/budget.h"

#include <gtest/gtest.h>

#include "sizes.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

SystemMemory machine(uint64_t total, uint64_t available, std::optional<uint64_t> limit = {},
                     std::optional<uint64_t> used = {}) {
  return {.total = total, .available = available, .cgroup_limit = limit, .cgroup_used = used};
}

TEST(Budget, WhatIsFreeLessAMargin) {
  const Result<Budget> budget = choose_budget(0, machine(24 * kGiB, 16 * kGiB));
  ASSERT_OK(budget);
  EXPECT_EQ(budget->bytes, 15 * kGiB);
  EXPECT_NE(budget->reason.find("free"), std::string::npos);
  // At least 256 MiB stay free, and on the smallest machines half.
  EXPECT_EQ(choose_budget(0, machine(4 * kGiB, 2 * kGiB))->bytes, 2 * kGiB - 256 * kMiB);
  EXPECT_EQ(choose_budget(0, machine(kGiB, 200 * kMiB))->bytes, 100 * kMiB);
}

TEST(Budget, GroupLimitsCount) {
  EXPECT_EQ(choose_budget(0, machine(64 * kGiB, 60 * kGiB, 10 * kGiB, 2 * kGiB))->bytes,
            8 * kGiB - 512 * kMiB);
  EXPECT_EQ(choose_budget(0, machine(64 * kGiB, 4 * kGiB, 10 * kGiB, 0))->bytes, 4 * kGiB - 256 * kMiB);
  EXPECT_TRUE(fails_with(choose_budget(8 * kGiB, machine(64 * kGiB, 60 * kGiB, 10 * kGiB, 2 * kGiB)),
                         Code::kOutOfMemory, "8.00 GiB asked", "control group limit 10.0 GiB",
                         "--budget 7680M"));
}

TEST(Budget, MoreThanIsSafeIsRefusedWithTheLargest) {
  const SystemMemory m = machine(24 * kGiB, 16 * kGiB);
  EXPECT_TRUE(
      fails_with(choose_budget(20 * kGiB, m), Code::kOutOfMemory, "20.0 GiB", "16.0 GiB", "--budget 15360M"));
  EXPECT_OK(choose_budget(15 * kGiB, m));
  EXPECT_FALSE(choose_budget(15 * kGiB + 1, m).has_value());
  EXPECT_EQ(choose_budget(3 * kGiB, m)->bytes, 3 * kGiB);
}

/// Case 44: machines from 8 to 512 GB, idle and busy.
TEST(Budget, IsNeverAboveTheSafeLine) {
  for (uint64_t total = 8 * kGiB; total <= 512 * kGiB; total *= 2)
    for (const double busy : {0.0, 0.3, 0.9, 0.999}) {
      const auto used = static_cast<uint64_t>(busy * static_cast<double>(total));
      const SystemMemory m = simulated_memory(total, used);
      const SafeLine line = safe_line(m);
      EXPECT_LE(line.bytes(), m.available);
      EXPECT_GE(line.margin_bytes, std::min(256 * kMiB, m.available / 2));
      EXPECT_EQ(choose_budget(0, m)->bytes, line.bytes());
      for (uint64_t asked = kGiB; asked <= 2 * total; asked += total / 8) {
        const Result<Budget> budget = choose_budget(asked, m);
        EXPECT_EQ(budget.has_value(), asked <= line.bytes()) << asked << " of " << total << ", busy " << busy;
        EXPECT_EQ(budget ? budget->bytes : asked, asked);
      }
    }
}

TEST(Budget, UnknownMemoryMustBeGiven) {
  EXPECT_TRUE(fails_with(choose_budget(0, {}), Code::kUnsupported, "--budget"));
  EXPECT_EQ(choose_budget(kGiB, {})->bytes, kGiB);
}

TEST(Budget, FlagsRoundToTheSafeSide) {
  EXPECT_EQ(as_flag(kGiB + 1, true), "1025M");
  EXPECT_EQ(as_flag(kGiB + 1, false), "1024M");
  EXPECT_EQ(as_flag(kGiB, true), "1024M");
}

TEST(Budget, SimulatedMachines) {
  EXPECT_EQ(usual_use(64 * kGiB), 2 * kGiB);
  EXPECT_EQ(usual_use(4 * kGiB), kGiB);
  EXPECT_EQ(simulated_memory(kGiB, 2 * kGiB).available, 0u);
}

}  // namespace
}  // namespace forebay
