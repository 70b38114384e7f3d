// Every task: its own answers are right, nothing else is, and what validates never trains.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "train/tasks/draws.h"
#include "train/tasks/task.h"

namespace forebay::train {
namespace {

class EveryTask : public ::testing::TestWithParam<std::string_view> {
 protected:
  std::unique_ptr<Task> task_ = make_task(GetParam()).value();
};

INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask, ::testing::ValuesIn(task_names()), [](const auto& info) {
  std::string name(info.param);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST_P(EveryTask, ItsAnswersAreRightAndFit) {
  const std::string alphabet = task_->alphabet();
  for (const Split split : {Split::kTrain, Split::kValidation})
    for (uint64_t i = 0; i < 300; ++i) {
      const Item item = task_->item(split, 7, i);
      const Score score = task_->score(item, item.answer);
      ASSERT_EQ(score.reward, 1.0) << item.prompt << item.answer;
      ASSERT_EQ(score.format, 1.0) << item.prompt << item.answer;
      ASSERT_EQ(score.declined, !item.answerable);
      ASSERT_LE(static_cast<int64_t>(item.answer.size()), task_->max_answer_bytes()) << item.answer;
      if (!alphabet.empty()) {
        ASSERT_EQ((item.prompt + item.answer).find_first_not_of(alphabet), std::string::npos) << item.prompt;
      }
    }
}

TEST_P(EveryTask, ItemsAreAFunctionOfTheirPlace) {
  std::set<std::string> prompts;
  for (uint64_t i = 0; i < 100; ++i) {
    const Item item = task_->item(Split::kTrain, 3, i);
    const Item again = make_task(GetParam()).value()->item(Split::kTrain, 3, i);
    EXPECT_EQ(item.prompt, again.prompt);
    EXPECT_EQ(item.answer, again.answer);
    prompts.insert(item.prompt);
  }
  EXPECT_GT(prompts.size(), 60u);
  EXPECT_NE(task_->item(Split::kTrain, 3, 0).prompt, task_->item(Split::kTrain, 4, 0).prompt);
}

TEST_P(EveryTask, WhatValidatesNeverTrains) {
  for (uint64_t i = 0; i < 500; ++i) {
    EXPECT_FALSE(is_held_out(task_->item(Split::kTrain, 1, i).prompt));
    EXPECT_TRUE(is_held_out(task_->item(Split::kValidation, 1, i).prompt));
  }
}

TEST_P(EveryTask, HostileAnswersEarnNothing) {
  std::string zeros(5000, '0'), brackets(100000, '('), json_bomb(100000, '['), binary;
  for (int c = 0; c < 256; ++c) binary += static_cast<char>(c);
  for (uint64_t i = 0; i < 20; ++i) {
    const Item item = task_->item(Split::kTrain, 11, i);
    const std::string& right = item.answer;
    // Where thoughts or steps come first, anything may.
    const bool free_start = GetParam() == "arithmetic-3d" || GetParam().starts_with("chat");
    if (!free_start) {
      for (const std::string& answer : {" " + right, item.prompt + right, right + right})
        EXPECT_EQ(task_->score(item, answer).reward, 0.0) << answer;
    }
    for (const std::string& answer :
         {std::string(), std::string(1, '\0'), right + " ", right + std::string(1, '\0'),
          right + "<|im_end|>", item.prompt, zeros, brackets, json_bomb, binary, std::string("nan"),
          std::string("1e999"), std::string("\xff\xfe")})
      EXPECT_EQ(task_->score(item, answer).reward, 0.0) << item.prompt << " " << answer.substr(0, 80);
  }
}

TEST(Tasks, NamesTheTasksThatExist) {
  const auto task = make_task("add-3d");
  ASSERT_FALSE(task);
  EXPECT_NE(task.error().message.find("'add-3d': expected one of add-2d"), std::string::npos)
      << task.error().message;
}

TEST(Tasks, AdditionIsWrittenBackwards) {
  const auto task = make_task("add-2d").value();
  for (uint64_t i = 0; i < 100; ++i) {
    const Item item = task->item(Split::kTrain, 1, i);
    const int sum = std::stoi(item.prompt.substr(0, 2)) + std::stoi(item.prompt.substr(3, 2));
    const std::string expected{static_cast<char>('0' + sum % 10), static_cast<char>('0' + sum / 10 % 10),
                               static_cast<char>('0' + sum / 100)};
    EXPECT_EQ(item.answer, expected);
  }
}

TEST(Tasks, OnlyTheResultOfSteppedArithmeticCounts) {
  const auto task = make_task("arithmetic-3d").value();
  const Item item = task->item(Split::kTrain, 1, 5);
  const std::string result = item.answer.substr(item.answer.rfind(';') + 1);
  EXPECT_EQ(task->score(item, result).reward, 1.0);
  EXPECT_EQ(task->score(item, "whatever;" + result).reward, 1.0);
  EXPECT_EQ(task->score(item, result + ";").reward, 0.0);
  EXPECT_EQ(task->score(item, "+" + result).reward, 0.0);
  EXPECT_EQ(task->score(item, "0" + result).reward, 0.0);
}

TEST(Tasks, CountdownTakesAnyRightExpression) {
  const auto task = make_task("countdown").value();
  const Item item{.prompt = "3,7,25:4=", .answer = "25-3*7", .key = "3,7,25:4"};
  for (const char* right : {"25-3*7", "25-7*3", "(25-(3*7))", "25-(7*3)"})
    EXPECT_EQ(task->score(item, right).reward, 1.0) << right;
  for (const char* wrong : {"4", "3+1", "25-21", "25-3*7+0", "25-3*7*1", "25-7-7-7", "3*7-25", "25-3*7=4",
                            "25 - 3*7", "-3*7+25", "25-3*07+0", "253-7"})
    EXPECT_EQ(task->score(item, wrong).reward, 0.0) << wrong;
  // One number twice, another not at all.
  const Item twice{.prompt = "3,3,6:3=", .answer = "6-3", .key = "3,3,6:9"};
  EXPECT_EQ(task->score(twice, "3+6").reward, 0.0);
  EXPECT_EQ(task->score(twice, "3*6/3+3").reward, 0.0);
  EXPECT_EQ(task->score({.prompt = {}, .answer = {}, .key = "5,2,2:5"}, "5/2*2").reward, 1.0)
      << "5/2 is no 2";
}

Item timer() {
  const std::string call = R"({"tool":"set_timer","args":{"minutes":32,"label":"backup"}})";
  return {.prompt = "...", .answer = call, .key = call};
}

TEST(Tasks, ToolCallsAreStrictJson) {
  const auto task = make_task("tools").value();
  EXPECT_EQ(
      task->score(timer(), R"({"args": {"label": "backup", "minutes": 32}, "tool": "set_timer"})").reward,
      1.0);
  const char* kBad[] = {
      R"({"tool":"set_timer","args":{"minutes":32,"label":"backup"}} )",
      R"({"tool":"set_timer","args":{"minutes":32,"label":"backup",}})",
      R"({"tool":"set_timer","tool":"set_timer","args":{"minutes":32,"label":"backup"}})",
      R"({"tool":"set_timer","args":{"minutes":31,"minutes":32,"label":"backup"}})",
      R"({"tool":"set_timer","args":{"minutes":"32","label":"backup"}})",
      R"({"tool":"set_timer","args":{"minutes":32.0,"label":"backup"}})",
      R"({"tool":"set_timer","args":{"minutes":32,"label":"backup","extra":1}})",
      R"({"tool":"set_timer","args":{"minutes":32}})",
      R"({"tool":"set_timer","args":[32,"backup"]})",
      R"({"tool":"Set_timer","args":{"minutes":32,"label":"backup"}})",
      R"([{"tool":"set_timer","args":{"minutes":32,"label":"backup"}}])",
      R"({'tool':'set_timer'})",
      R"(/* */{"tool":"set_timer","args":{"minutes":32,"label":"backup"}})",
      R"("set_timer")",
  };
  for (const char* bad : kBad) {
    EXPECT_EQ(task->score(timer(), bad).reward, 0.0) << bad;
    EXPECT_EQ(task->score(timer(), bad).format, 0.0) << bad;
  }
  // Well-formed and wrong: the format shows, and is not added.
  const Score wrong = task->score(timer(), R"({"tool":"set_timer","args":{"minutes":33,"label":"backup"}})");
  EXPECT_EQ(wrong.reward, 0.0);
  EXPECT_EQ(wrong.format, 1.0);
}

TEST(Tasks, DecliningIsRightOnlyWhereNoToolFits) {
  const auto task = make_task("tools-or-none").value();
  EXPECT_EQ(task->score(timer(), R"({"tool":null})").reward, 0.0);
  EXPECT_TRUE(task->score(timer(), R"({"tool":null})").declined);
  int n_answerable = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    const Item item = task->item(Split::kTrain, 2, i);
    n_answerable += item.answerable ? 1 : 0;
    if (!item.answerable) {
      EXPECT_EQ(task->score(item, R"({"tool":null,"args":{}})").reward, 0.0);
      EXPECT_EQ(task->score(item, R"({"tool":"none"})").reward, 0.0);
    }
  }
  EXPECT_GT(n_answerable, 150);
  EXPECT_LT(n_answerable, 250);
}

TEST(Tasks, ChatAnswersStandAfterTheThoughts) {
  const auto task = make_task("chat-arithmetic").value();
  const Item item{.prompt = {}, .answer = {}, .key = "42"};
  EXPECT_EQ(task->score(item, "6 * 7 = 41\n</think>\n\n42").reward, 1.0);
  EXPECT_EQ(task->score(item, "\n</think>\n\n42").reward, 1.0);
  EXPECT_EQ(task->score(item, "42").reward, 0.0);
  EXPECT_EQ(task->score(item, "42\n</think>\n\n41").reward, 0.0);
  EXPECT_EQ(task->score(item, "\n</think>\n\n42 or 43").reward, 0.0);
  EXPECT_EQ(task->score(item, "\n</think>\n\n41</think>42").reward, 0.0);
}

}  // namespace
}  // namespace forebay::train
