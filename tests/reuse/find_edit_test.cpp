// Which edit made one prompt out of another.
#include "reuse/find_edit.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "joined.h"

namespace forebay {
namespace {

Tokens run_of(int first, int n) {
  Tokens out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEST(FindEdit, SplitsTwoPrompts) {
  const Tokens a = run_of(0, 30), b = run_of(100, 12), c = run_of(200, 50);
  for (const int n_inserted : {0, 5, 40})
    for (const int n_after : {1, 20}) {
      const Tokens after = joined({a, run_of(300, n_inserted), c, run_of(400, n_after)});
      const auto found = find_edit(joined({a, b, c}), after, 20);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->n_prefix, 30);
      EXPECT_EQ(found->n_removed, 12);
      EXPECT_EQ(found->n_inserted, n_inserted);
      EXPECT_EQ(found->n_suffix, 50);
    }
  // The last token's logits are wanted: something must follow C.
  EXPECT_FALSE(find_edit(joined({a, b, c}), joined({a, c}), 50).has_value());
  EXPECT_FALSE(find_edit(joined({a, b, c}), joined({a, c, {1}}), 51).has_value());
  EXPECT_TRUE(find_edit(joined({a, b, c}), joined({a, c, {1}}), 50).has_value());
  EXPECT_FALSE(find_edit(joined({a, b, c}), joined({a, run_of(300, 90)}), 20).has_value());
  EXPECT_FALSE(find_edit({}, a, 1).has_value());
  EXPECT_FALSE(find_edit(a, {}, 1).has_value());
}

TEST(FindEdit, TakesTheLongestOfSeveralAndCountsNothingTwice) {
  const Tokens a = run_of(0, 10), c = run_of(200, 30);
  // C's end stands twice in the new prompt, alone first.
  const Tokens after = joined({a, {7}, Tokens(c.end() - 20, c.end()), {8}, c, {9}});
  const auto found = find_edit(joined({a, run_of(100, 5), c}), after, 10);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->n_suffix, 30);
  EXPECT_EQ(found->n_inserted, 22);
  // Nothing but one token, over and over: the parts do not overlap.
  const Tokens ones(60, 1);
  const auto shorter = find_edit(joined({ones, {2}, ones}), joined({ones, ones, {3}}), 20);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->n_prefix, 60);
  EXPECT_EQ(shorter->n_suffix, 60);
  EXPECT_EQ(shorter->n_removed + shorter->n_inserted, 1);
}

}  // namespace
}  // namespace forebay
