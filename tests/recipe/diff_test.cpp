// What differs between two resolved recipes.
#include "recipe/diff.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay {
namespace {

TEST(RecipeDiff, IsByMeaning) {
  const auto a = resolved_values("g.lr = 0.001\ng.n = 3\ng.s = \"x\"\nold = true\n", "a");
  const auto b = resolved_values("[g]\ns = 'x'\nn = 4\nlr = 1e-3\n[new]\nk = [1, 'a']\n", "b");
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_TRUE(differences(*a, *a).empty());
  EXPECT_EQ(differences(*a, *b),
            (std::vector<RecipeChange>{{"g.n", "3", "4"}, {"new.k", "", "[1, \"a\"]"}, {"old", "true", ""}}));
  EXPECT_TRUE(fails_with(resolved_values("not toml", "cell prf"), Code::kCorrupt, "cell prf:1:"));
}

}  // namespace
}  // namespace forebay
