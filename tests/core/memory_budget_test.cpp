#include "core/memory_budget.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay {
namespace {

using Entries = std::vector<std::pair<std::string, uint64_t>>;

TEST(MemoryBudget, CountsWhatLivesAndRemembersThePeak) {
  MemoryBudget budget(100);
  auto weights = budget.reserve(60, "weights");
  ASSERT_OK(weights);
  {
    auto scratch = budget.reserve(40, "scratch");
    ASSERT_OK(scratch);
    EXPECT_EQ(scratch->bytes(), 40u);
    EXPECT_EQ(budget.used_bytes(), 100u);
    EXPECT_EQ(budget.by_purpose(), (Entries{{"weights", 60}, {"scratch", 40}}));
  }
  EXPECT_EQ(budget.used_bytes(), 60u);
  EXPECT_EQ(budget.peak_bytes(), 100u);
  EXPECT_EQ(budget.by_purpose(), (Entries{{"weights", 60}}));
}

TEST(MemoryBudget, RefusesOneByteTooManyAndCountsNothing) {
  MemoryBudget budget(100);
  auto first = budget.reserve(60, "weights");
  ASSERT_OK(first);
  EXPECT_TRUE(
      fails_with(budget.reserve(41, "kv cache"), Code::kOutOfMemory, "kv cache", "41 bytes", "60", "100"));
  EXPECT_TRUE(fails_with(budget.reserve(UINT64_MAX, "kv cache"), Code::kOutOfMemory)) << "a sum that wraps";
  EXPECT_EQ(budget.used_bytes(), 60u);
  EXPECT_EQ(budget.peak_bytes(), 60u);
  EXPECT_OK(budget.reserve(40, "kv cache"));
}

TEST(MemoryBudget, OnePurposeAddsUpAndLargestComesFirst) {
  MemoryBudget budget;
  auto a = budget.reserve(10, "a");
  auto b1 = budget.reserve(8, "b");
  auto b2 = budget.reserve(9, "b");
  ASSERT_TRUE(a && b1 && b2);
  EXPECT_EQ(budget.by_purpose(), (Entries{{"b", 17}, {"a", 10}}));
  EXPECT_EQ(budget.limit_bytes(), MemoryBudget::kUnlimited);
}

TEST(MemoryBudget, MovedReservationsAreCountedOnce) {
  MemoryBudget budget(100);
  auto made = budget.reserve(30, "a");
  ASSERT_OK(made);
  Reservation first = std::move(*made);
  EXPECT_EQ(budget.used_bytes(), 30u);
  Reservation second = std::move(*budget.reserve(20, "b"));
  EXPECT_EQ(budget.used_bytes(), 50u);
  second = std::move(first);  // gives the 20 back
  EXPECT_EQ(budget.used_bytes(), 30u);
  EXPECT_EQ(second.bytes(), 30u);
  Reservation& alias = second;
  second = std::move(alias);
  EXPECT_EQ(budget.used_bytes(), 30u) << "moving onto itself changes nothing";
  second = Reservation();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(MemoryBudget, NeverPassesItsLimitUnderConcurrentUse) {
  constexpr int kThreads = 4, kRounds = 5000;
  MemoryBudget budget(100);
  std::atomic<int> n_refused = 0;
  std::atomic<bool> passed_limit = false;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const std::string purpose = t % 2 == 0 ? "even" : "odd";
        std::optional<Reservation> held;
        for (int i = 0; i < kRounds; ++i) {
          auto reservation = budget.reserve(20 + t * 5 + i % 7, purpose);
          if (reservation)
            held = std::move(*reservation);
          else
            ++n_refused;
          if (budget.used_bytes() > 100) passed_limit = true;
          if (i % 3 == 0) held.reset();
        }
      });
  }
  EXPECT_FALSE(passed_limit);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_TRUE(budget.by_purpose().empty());
  EXPECT_LE(budget.peak_bytes(), 100u);
  EXPECT_GT(budget.peak_bytes(), 0u);
}

}  // namespace
}  // namespace forebay
