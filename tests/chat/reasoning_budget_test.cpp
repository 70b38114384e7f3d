#include "chat/reasoning_budget.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

/// Feeds tokens, forced ones first; token t of `own` has the text `own[t]`. Returns what was written.
struct Written {
  std::string text;
  int64_t n_own = 0;
};
Written follow(ReasoningBudget& budget, const std::vector<std::string>& own, int n_steps) {
  const std::vector<std::string> forced_texts = {"[stop]", "\n", "</think>", "\n\n"};
  Written written;
  for (int i = 0; i < n_steps; ++i) {
    if (const auto forced = budget.forced()) {
      written.text += forced_texts[*forced - 1000];
      budget.accept(*forced, forced_texts[*forced - 1000]);
    } else {
      const std::string& text = own[written.n_own++ % own.size()];
      written.text += text;
      budget.accept(1, text);
    }
  }
  return written;
}
const std::vector<int32_t> kWrapUp = {1000, 1001, 1002, 1003};

TEST(ReasoningBudget, EndsThinkingAtAPause) {
  ReasoningBudget budget(20, kWrapUp, true);
  const Written w = follow(budget, {"a", "b", "c", ".", "d", "e", "f"}, 30);
  // 20 tokens, then at most 2 more to get to a full stop; there is none, so it stops at 22.
  EXPECT_EQ(w.text.substr(0, w.text.find('[')).size(), 22u);
  EXPECT_NE(w.text.find("[stop]\n</think>\n\n"), std::string::npos);
  EXPECT_FALSE(budget.in_reasoning());
  EXPECT_TRUE(budget.wrapped_up());
  EXPECT_EQ(budget.n_reasoning_tokens(), 24);

  ReasoningBudget pause(4, kWrapUp, true);
  EXPECT_EQ(follow(pause, {"a", "b", "c", "."}, 6).text, "abc.[stop]\n");
}

TEST(ReasoningBudget, LeavesShortThinkingAlone) {
  ReasoningBudget budget(20, kWrapUp, true);
  const Written w = follow(budget, {"a", "</", "think", ">", "b"}, 50);
  EXPECT_EQ(w.n_own, 50);
  EXPECT_FALSE(budget.wrapped_up());
}

TEST(ReasoningBudget, FollowsThinkingThatTheModelOpens) {
  ReasoningBudget budget(2, kWrapUp, false);
  EXPECT_EQ(follow(budget, {"\n", "<think>", "a.", "b."}, 8).text, "\n<think>a.b.[stop]\n</think>\n\n");
  ReasoningBudget content(2, kWrapUp, false);
  EXPECT_EQ(follow(content, {"a", "<think>", "c"}, 6).n_own, 6);
}

TEST(ReasoningBudget, WithoutALimitForcesNothing) {
  ReasoningBudget budget(-1, kWrapUp, true);
  EXPECT_EQ(follow(budget, {"a."}, 1000).n_own, 1000);
}

TEST(ReasoningPlan, EffortIsABudget) {
  using Effort = ReasoningEffort;
  EXPECT_EQ(plan_reasoning({}).enable_thinking, std::nullopt);
  EXPECT_EQ(plan_reasoning({}).budget_tokens, -1);
  EXPECT_EQ(plan_reasoning({.effort = Effort::kNone}).enable_thinking, false);
  EXPECT_EQ(plan_reasoning({.effort = Effort::kLow}).budget_tokens, 512);
  EXPECT_EQ(plan_reasoning({.effort = Effort::kLow}).enable_thinking, true);
  EXPECT_EQ(plan_reasoning({.effort = Effort::kHigh}).budget_tokens, -1);
  EXPECT_EQ(plan_reasoning({.on = false, .effort = Effort::kHigh}).enable_thinking, false);
  EXPECT_EQ(plan_reasoning({.effort = Effort::kHigh, .budget_tokens = 7}).budget_tokens, 7);
  EXPECT_EQ(plan_reasoning({.budget_tokens = 0}).enable_thinking, false);
  EXPECT_EQ(*parse_reasoning_effort("medium"), Effort::kMedium);
  EXPECT_EQ(parse_reasoning_effort("most").error().message,
            "'most', expected none, minimal, low, medium or high");
}

TEST(ReasoningPlan, ClosesWhatATemplateLeavesOpen) {
  EXPECT_EQ(without_thinking("<|im_start|>assistant\n<think>\n"),
            "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(without_thinking("a<think>\n\n</think>\n\n"), "a<think>\n\n</think>\n\n");
  EXPECT_EQ(without_thinking("a"), "a");
}

}  // namespace
}  // namespace forebay
