#include "tensor/buffer.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay {
namespace {

TEST(Buffer, IsZeroAlignedAndCounted) {
  MemoryBudget budget(1 << 20);
  {
    auto buffer = Buffer::allocate(budget, 10'000, "test");
    ASSERT_OK(buffer);
    EXPECT_EQ(buffer->bytes(), 10'000u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % Buffer::kAlignment, 0u);
    EXPECT_EQ(budget.used_bytes(), 10'000u);
    const std::span<float> floats = buffer->as<float>();
    EXPECT_EQ(floats.size(), 2500u);
    EXPECT_TRUE(std::ranges::all_of(floats, [](float x) { return x == 0; }));
    floats.back() = 1;
    EXPECT_EQ(buffer->as<double>().size(), 1250u);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Buffer, RefusedByTheBudget) {
  MemoryBudget budget(4096);
  EXPECT_TRUE(
      fails_with(Buffer::allocate(budget, 4097, "experts"), Code::kOutOfMemory, "experts", "4097", "4096"));
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Buffer, RefusedByTheSystemGivesTheBudgetBack) {
  MemoryBudget budget;
  EXPECT_TRUE(fails_with(Buffer::allocate(budget, 1ull << 60, "experts"), Code::kOutOfMemory, "experts"));
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Buffer, EmptyIsFine) {
  MemoryBudget budget(0);
  auto buffer = Buffer::allocate(budget, 0, "nothing");
  ASSERT_OK(buffer);
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_TRUE(buffer->as<float>().empty());
}

TEST(Buffer, MovesWithItsBytesAndReservation) {
  MemoryBudget budget;
  auto made = Buffer::allocate(budget, 4096, "a");
  ASSERT_OK(made);
  made->as<int>()[7] = 42;
  Buffer moved = std::move(*made);
  EXPECT_EQ(made->data(), nullptr);
  EXPECT_EQ(moved.as<int>()[7], 42);
  moved = std::move(*Buffer::allocate(budget, 8192, "b"));
  EXPECT_EQ(moved.bytes(), 8192u);
  EXPECT_EQ(budget.used_bytes(), 8192u) << "the first buffer is gone";
}

}  // namespace
}  // namespace forebay
