#include "core/fifo.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(Fifo, GivesBackInOrderHoweverItIsFilled) {
  Fifo<int> fifo;
  int pushed = 0, popped = 0;
  uint64_t random = 1;
  for (int i = 0; i < 10000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    if ((random >> 40) % 100 < 51) {
      fifo.push(pushed++);
    } else if (!fifo.empty()) {
      ASSERT_EQ(fifo.pop(), popped++);
    }
    ASSERT_EQ(fifo.size(), static_cast<size_t>(pushed - popped));
    ASSERT_EQ(fifo.empty(), pushed == popped);
    if (!fifo.empty()) {
      ASSERT_EQ(fifo.front(), popped);
    }
  }
}

TEST(Fifo, TakesAList) {
  Fifo<int> fifo;
  fifo.push(std::vector<int>{1, 2, 3});
  EXPECT_EQ(fifo.pop(), 1);
  fifo.clear();
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace forebay
