// Slots lie side by side where they have one size, count one by one, and give their pages back.
#include "experts/slot_memory.h"

#include <cstring>

#include <gtest/gtest.h>

#include "core/page_range.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

constexpr uint64_t kSlot = 3 * (uint64_t{1} << 20) + kPageBytes;

TEST(SlotMemory, SlotsOfOneSizeLieSideBySide) {
  MemoryBudget budget(3 * kSlot);
  SlotMemory memory(budget, kSlot, 8);
  memory.limit(3);
  EXPECT_EQ(budget.used_bytes(), 0u);
  std::vector<SlotMemory::Piece> slots;
  for (int i = 0; i < 3; ++i) {
    Result<SlotMemory::Piece> piece = memory.take(kSlot);
    ASSERT_OK(piece);
    EXPECT_EQ(piece->bytes(), kSlot);
    if (i > 0) {
      EXPECT_EQ(piece->data(), slots.back().data() + kSlot);
    }
    std::memset(piece->data(), i + 1, kSlot);
    slots.push_back(std::move(piece).value());
    EXPECT_EQ(budget.used_bytes(), (i + 1) * kSlot);
  }
  const Result<SlotMemory::Piece> fourth = memory.take(kSlot);
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().code, Code::kOutOfMemory);

  const std::byte* middle = slots[1].data();
  slots[1] = {};
  EXPECT_EQ(budget.used_bytes(), 2 * kSlot);
  EXPECT_EQ(slots[0].data()[kSlot - 1], std::byte{1}) << "a neighbour's bytes stay";
  EXPECT_EQ(slots[2].data()[0], std::byte{3});
  Result<SlotMemory::Piece> again = memory.take(kSlot);
  ASSERT_OK(again);
  EXPECT_EQ(again->data(), middle);
  EXPECT_EQ(again->data()[0], std::byte{0}) << "its pages were given back";
  EXPECT_EQ(again->data()[kSlot - 1], std::byte{0});
}

TEST(SlotMemory, SlotsOfSeveralSizesLieApart) {
  MemoryBudget budget;
  SlotMemory memory(budget, 0, 8);
  memory.limit(2);
  {
    Result<SlotMemory::Piece> a = memory.take(kPageBytes);
    Result<SlotMemory::Piece> b = memory.take(kSlot);
    ASSERT_OK(a);
    ASSERT_OK(b);
    std::memset(a->data(), 1, kPageBytes);
    std::memset(b->data(), 2, kSlot);
    EXPECT_EQ(a->data()[0], std::byte{1});
    EXPECT_EQ(budget.used_bytes(), kPageBytes + kSlot);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

}  // namespace
}  // namespace forebay
