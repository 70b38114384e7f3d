#include "chat/line_context.h"

#include <string_view>

#include <gtest/gtest.h>

namespace forebay {
namespace {

LineContext after(std::string_view text) {
  LineContext line;
  for (const char c : text) line.push(c);
  return line;
}

TEST(LineContext, KnowsQuotations) {
  for (const std::string_view quoted : {"`", "a `b", "``", "``a ` b", "> a", "```", "```cpp", "```\na\n",
                                        "~~~\n", "  ```\n", "````\n```\n", "```\n~~~\n", "```\n``` x\n"})
    EXPECT_TRUE(after(quoted).quoted()) << quoted;
  for (const std::string_view plain : {"", "a", "`a`", "`` ` ``", "```\na\n```\n", "````\n`````\n", "a `b\n",
                                       "    ```\n", "a > b", "~~~\n~~~\n", "> a\n"})
    EXPECT_FALSE(after(plain).quoted()) << plain;
}

TEST(LineContext, KnowsWhereALineStarts) {
  EXPECT_TRUE(after("").at_line_start());
  EXPECT_TRUE(after("a\n").at_line_start());
  EXPECT_TRUE(after("a\n  \t").at_line_start());
  EXPECT_FALSE(after("a ").at_line_start());
}

}  // namespace
}  // namespace forebay
