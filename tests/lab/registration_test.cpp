// One variable, and what may come with it.
#include "lab/registration.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

TEST(Registration, OneVariableWithWhatBelongsToIt) {
  const auto one = attribute("prf", "dense", {{"wire.codec", "\"dense\"", "\"prf\""}, {"wire.k", "", "16"}});
  ASSERT_OK(one);
  EXPECT_EQ(one->variable->key, "wire.codec");
  ASSERT_EQ(one->implied.size(), 1u);
  EXPECT_EQ(one->implied[0].key, "wire.k");
}

TEST(Registration, MoreOrLessIsRefused) {
  EXPECT_TRUE(fails_with(attribute("b", "a", {}), Code::kInvalidArgument, "b differs from a in nothing"));
  EXPECT_TRUE(fails_with(attribute("b", "a", {{"x.lr", "1", "2"}, {"x.n", "3", "4"}}), Code::kInvalidArgument,
                         "2 variables", "x.lr, x.n"));
  EXPECT_TRUE(fails_with(attribute("b", "a", {{"x.lr", "1", "2"}, {"y.n", "", "4"}}), Code::kInvalidArgument,
                         "x.lr and in y.n"));
  EXPECT_TRUE(
      fails_with(attribute("b", "a", {{"y.n", "", "4"}}), Code::kInvalidArgument, "only one of them"));
}

}  // namespace
}  // namespace forebay::lab
