#include "chat/tool_memory.h"

#include <gtest/gtest.h>

#include "transcript.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

const std::string kText =
    "Let me look.\n<tool_call>\n<function=weather>\n<parameter=days>\n "
    "3\n</parameter>\n<parameter=city>\nParis\n"
    "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>";

ParsedAnswer answer(const std::string& prefix = "") {
  ParsedAnswer answer =
      parse_answer("hm\n</think>\n\n" + kText, ToolStyle::kXml, true, test_tools(), {}).answer;
  for (ParsedCall& call : answer.calls) call.id = prefix + call.id;
  return answer;
}

/// As clients send it back: other key order, other white space.
Json message(const std::string& prefix = "") {
  return {{"role", "assistant"},
          {"content", " Let me look."},
          {"tool_calls",
           {{{"id", prefix + "id0"},
             {"type", "function"},
             {"function", {{"name", "weather"}, {"arguments", "{\"city\":\"Paris\",  \"days\":3}"}}}},
            {{"id", prefix + "id1"}, {"function", {{"name", "now"}, {"arguments", Json::object()}}}}}}};
}

TEST(ToolMemory, GivesBackTheBytes) {
  ToolMemory memory(1 << 20);
  memory.remember(answer());
  Json messages = {{{"role", "user"}, {"content", "?"}}, message(), {{"role", "tool"}, {"content", "4"}}};
  const Json before = messages;
  EXPECT_EQ(memory.restore(messages), (std::vector<size_t>{1}));
  EXPECT_EQ(messages[0], before[0]);
  EXPECT_EQ(messages[2], before[2]);
  EXPECT_EQ(messages[1]["content"], kText);
  EXPECT_EQ(messages[1]["reasoning_content"], "hm");
  EXPECT_FALSE(messages[1].contains("tool_calls"));
  EXPECT_TRUE(memory.restore(messages).empty());
}

TEST(ToolMemory, KeepsReasoningThatWasSent) {
  ToolMemory memory(1 << 20);
  memory.remember(answer());
  Json messages = Json::array({message()});
  messages[0]["reasoning_content"] = "mine";
  EXPECT_EQ(memory.restore(messages).size(), 1u);
  EXPECT_EQ(messages[0]["reasoning_content"], "mine");
}

TEST(ToolMemory, LeavesWhatWasEdited) {
  ToolMemory memory(1 << 20);
  memory.remember(answer());
  const auto stays = [&](const std::function<void(Json&)>& edit) {
    Json messages = Json::array({message()});
    edit(messages[0]);
    const Json edited = messages;
    return memory.restore(messages).empty() && messages == edited;
  };
  EXPECT_FALSE(stays([](Json&) {}));
  EXPECT_TRUE(stays([](Json& m) { m["content"] = "Something else."; }));
  EXPECT_TRUE(stays([](Json& m) { m["content"] = 5; }));
  EXPECT_TRUE(stays([](Json& m) { m["role"] = "user"; }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"].erase(1); }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"][0]["id"] = "other"; }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"][1]["id"] = "other"; }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"][0]["function"]["name"] = "now"; }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"][0]["function"]["arguments"] = "{\"days\": 4}"; }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"][0]["function"] = 1; }));
  EXPECT_TRUE(stays([](Json& m) { m["tool_calls"] = 1; }));
  EXPECT_TRUE(stays([](Json& m) { m = "text"; }));
  Json none = "no list";
  EXPECT_TRUE(memory.restore(none).empty());
}

TEST(ToolMemory, ForgetsTheOldestFirst) {
  ToolMemory one(1 << 20);
  one.remember(answer());
  ToolMemory memory(2 * one.bytes() + 100);
  memory.remember(answer("a"));
  memory.remember(answer("b"));
  memory.remember(answer("b"));
  EXPECT_EQ(memory.n_answers(), 2u);
  Json used = Json::array({message("a")});
  EXPECT_EQ(memory.restore(used).size(), 1u);
  memory.remember(answer("c"));
  EXPECT_EQ(memory.n_answers(), 2u);
  EXPECT_LE(memory.bytes(), 2 * one.bytes() + 100);
  Json messages = {message("a"), message("b"), message("c")};
  EXPECT_EQ(memory.restore(messages), (std::vector<size_t>{0, 2}));

  ToolMemory small(10);
  small.remember(answer());
  EXPECT_EQ(small.n_answers(), 0u);
}

TEST(ToolMemory, KeepsOnlyWhatItCanGiveBack) {
  ToolMemory memory(1 << 20);
  memory.remember(parse_answer("no calls", ToolStyle::kXml, false, test_tools(), {}).answer);
  memory.remember(parse_answer(kText, ToolStyle::kXml, true, test_tools(), {}).answer);
  EXPECT_EQ(memory.n_answers(), 0u);
}

}  // namespace
}  // namespace forebay
