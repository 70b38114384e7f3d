#include "engine/reasoning.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

struct Split {
  std::string reasoning, content;
  bool operator==(const Split&) const = default;
};

Split split(const std::string& text, bool inside, size_t step) {
  ReasoningSplitter splitter(inside);
  Split all;
  const auto take = [&](const ReasoningSplitter::Piece& piece) {
    all.reasoning += piece.reasoning;
    all.content += piece.content;
  };
  for (size_t i = 0; i < text.size(); i += step) take(splitter.push(std::string_view(text).substr(i, step)));
  take(splitter.finish());
  return all;
}

TEST(Reasoning, IsTheSameHoweverTheTextIsCut) {
  const struct {
    std::string text;
    bool inside;
    Split want;
  } cases[] = {
      {"first 7\n</think>\n\nanswer", true, {"first 7\n", "answer"}},
      {"<think>a</think>b", false, {"a", "b"}},
      {"\n<think>\na\n</think>\n\nb\n\nc", false, {"\na\n", "b\n\nc"}},
      {"never closed", true, {"never closed", ""}},
      {"no thinking", false, {"", "no thinking"}},
      {"quoted <think> stays", false, {"", "quoted <think> stays"}},
      {"a</think>b <think>c</think>", true, {"a", "b <think>c</think>"}},
      {"ends in a half tag </thi", true, {"ends in a half tag </thi", ""}},
      {"a < b </think>x", true, {"a < b ", "x"}},
      {"", true, {"", ""}},
  };
  for (const auto& c : cases)
    for (size_t step = 1; step <= 12; ++step) {
      const Split got = split(c.text, c.inside, step);
      EXPECT_EQ(got.reasoning, c.want.reasoning) << c.text << " in steps of " << step;
      // Newlines before the tag may count as content; they never matter.
      EXPECT_EQ(got.content.substr(std::min(got.content.find_first_not_of('\n'), got.content.size())),
                c.want.content)
          << c.text << " in steps of " << step;
    }
}

TEST(Reasoning, PromptsThatLeaveItOpen) {
  EXPECT_TRUE(ends_inside_thinking("<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(ends_inside_thinking("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends_inside_thinking("<|im_start|>assistant\n"));
  EXPECT_TRUE(ends_inside_thinking("<think>a</think>b<think>"));
}

}  // namespace
}  // namespace forebay
