#include "core/ensure.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(Ensure, PassesWithoutLookingAtTheMessage) {
  int n_messages = 0;
  const auto message = [&] {
    ++n_messages;
    return "unused";
  };
  ENSURE(1 + 1 == 2, message());
  EXPECT_EQ(n_messages, 0);
}

TEST(EnsureDeathTest, AbortsNamingConditionPlaceAndMessage) {
  const int n_slots = 3;
  EXPECT_DEATH(ENSURE(n_slots == 4, "a slot is missing"),
               "bug: a slot is missing \\(n_slots == 4\\) at .*ensure_test.cpp:[0-9]+");
}

}  // namespace
}  // namespace forebay
