#include "forebay/result.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace forebay {
namespace {

Result<int> half_of(int n) {
  if (n % 2 != 0) return Error{Code::kInvalidArgument, "odd"};
  return n / 2;
}

Result<void> only_even(int n) {
  TRY(half_of(n));
  return {};
}

Result<int> quarter_of(int n) {
  TRY(only_even(n));
  return TRY(half_of(TRY(half_of(n))));
}

Result<int> quarter_in_context(int n) {
  Result<int> quarter = quarter_of(n);
  if (!quarter) return std::move(quarter).error().in("quarter").in("page 7");
  return quarter;
}

TEST(Result, TryGivesTheValueOrReturnsTheError) {
  ASSERT_TRUE(quarter_of(12).has_value());
  EXPECT_EQ(*quarter_of(12), 3);
  EXPECT_FALSE(quarter_of(3));
  EXPECT_FALSE(quarter_of(6)) << "the inner half is odd";
  EXPECT_EQ(quarter_of(6).error().code, Code::kInvalidArgument);
}

TEST(Result, ContextIsPutInFront) {
  EXPECT_EQ(quarter_in_context(5).error().message, "page 7: quarter: odd");
  EXPECT_EQ(quarter_in_context(5).error().code, Code::kInvalidArgument);
  EXPECT_EQ(*quarter_in_context(8), 2);
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto pass_on = [&]() -> Result<std::unique_ptr<int>> {
    std::unique_ptr<int> made = TRY(make());
    *made += 1;
    return made;
  };
  const std::unique_ptr<int> value = std::move(pass_on()).value();
  EXPECT_EQ(*value, 8);
}

TEST(Result, HoldsAValueOfTypeErrorFreeString) {
  Result<std::string> text = std::string("four");
  EXPECT_EQ(text->size(), 4u);
  *text += "teen";
  EXPECT_EQ(text.value(), "fourteen");
}

TEST(Result, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code)
    names.insert(name_of(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::kInternal) + 1);
  EXPECT_EQ(name_of(Code::kNotFound), "not found");
}

}  // namespace
}  // namespace forebay
