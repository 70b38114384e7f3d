#include "train/tasks/expression.h"

#include <string>

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

TEST(Expression, IsExact) {
  EXPECT_EQ(evaluate("1+2*3").value().value, (Fraction{7, 1}));
  EXPECT_EQ(evaluate("(1+2)*3").value().value, (Fraction{9, 1}));
  EXPECT_EQ(evaluate("8-3-2").value().value, (Fraction{3, 1}));
  EXPECT_EQ(evaluate("8/4/2").value().value, (Fraction{1, 1}));
  EXPECT_EQ(evaluate("1/3+1/6").value().value, (Fraction{1, 2}));
  EXPECT_EQ(evaluate("2-5").value().value, (Fraction{-3, 1}));
  EXPECT_EQ(evaluate("2/(3-5)").value().value, (Fraction{-1, 1}));
  EXPECT_EQ(evaluate("3*(25-7)").value().numbers, (std::vector<int64_t>{3, 25, 7}));
}

TEST(Expression, RefusesEverythingElse) {
  const std::string deep(64, '(');
  for (const std::string& text :
       {std::string(), std::string("+1"), std::string("1+"), std::string("1++2"), std::string("1 + 2"),
        std::string("(1"), std::string("1)"), std::string("()"), std::string("1/0"), std::string("1/(2-2)"),
        std::string("1234567"), std::string("999999*999999"), std::string("a"), std::string("1\0", 2), deep,
        std::string(65, '1'), std::string("2**3"), std::string("1e3"), std::string("0x10")})
    EXPECT_FALSE(evaluate(text)) << text;
}

}  // namespace
}  // namespace forebay::train
