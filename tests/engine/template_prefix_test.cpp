// Why earlier turns can be reused at all: the next prompt of a conversation begins with the one before it, up
// to where its answer began; the answer itself returns as it was written but for its reasoning.
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "forebay/engine.h"

#include "engine/engine_impl.h"
#include "engine/session_impl.h"
#include "support/result_matchers.h"
#include "tokenizer/chat_template.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

class TemplatePrefixes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
    EngineOptions options;
    options.model = kModel;
    options.context = 256;
    engine_.emplace(Engine::open(options).value());
  }
  std::string render(const Json& talk) { return engine_->render_chat(talk.dump()).value(); }
  std::vector<int32_t> ids(const Json& talk) { return engine_->tokenize(render(talk)).value(); }
  static int64_t common(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  }
  int64_t last_turn(const std::vector<int32_t>& prompt, int32_t turn_token) {
    return prompt.rend() - std::find(prompt.rbegin(), prompt.rend(), turn_token) - 1;
  }

  std::optional<Engine> engine_;
};

TEST_F(TemplatePrefixes, TheNextPromptBeginsWithThisOneUpToItsAnswer) {
  Session session = engine_->new_session().value();
  const int32_t turn_token = session.impl().engine.turn_token;
  ASSERT_GE(turn_token, 0) << "the template's turns are not found";
  const std::vector<std::string> texts = {"What is 37 + 58?", "a\n\nb",     "  spaces  ",
                                          "日本語の文です。", "{\"a\": 1}", "line one\nline two\n",
                                          "<b>markup</b>",    "x"};
  std::mt19937 random(3);
  const auto any = [&] { return texts[random() % texts.size()]; };
  for (int history = 0; history < 40; ++history) {
    Json talk = {{"messages", Json::array()}, {"add_generation_prompt", true}};
    if (history % 2 == 0) talk["messages"].push_back({{"role", "system"}, {"content", any()}});
    for (int turn = 0; turn < 5; ++turn) {
      talk["messages"].push_back(
          {{"role", turn > 0 && random() % 3 == 0 ? "tool" : "user"}, {"content", any()}});
      const std::string before_text = render(talk);
      const std::vector<int32_t> before = ids(talk);
      Json answer = {{"role", "assistant"}, {"content", any()}};
      // Line ends around the tags belong to no side (docs/tools.md).
      std::string thought = random() % 2 == 0 ? any() : "";
      while (thought.ends_with('\n')) thought.pop_back();
      if (!thought.empty()) answer["reasoning_content"] = thought;
      talk["messages"].push_back(answer);
      Json next = talk;
      next["messages"].push_back({{"role", "user"}, {"content", any()}});
      const std::vector<int32_t> after = ids(next);
      EXPECT_GE(common(before, after), last_turn(before, turn_token)) << next.dump(1);
      // This template drops nothing: the answer returns as it was written.
      const std::string written =
          thought + "\n</think>\n\n" + answer["content"].get<std::string>() + "<|im_end|>\n";
      EXPECT_TRUE(render(next).starts_with(before_text + written)) << next.dump(1);
    }
  }
}

/// Without what was thought.
std::string without_thinking(std::string text) {
  const std::string open = "<think>\n", close = "</think>\n\n";
  for (size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    const size_t end = text.find(close, at);
    if (end == std::string::npos) break;
    text.erase(at, end + close.size() - at);
  }
  return text;
}

// Other templates drop the reasoning of earlier turns: nothing else changes.
TEST(PublishedTemplates, TheNextPromptIsThisOneAndItsAnswerButForThinking) {
  const std::filesystem::path folder = FOREBAY_SOURCE_DIR "/../shared/data/templates";
  int n_templates = 0;
  for (const char* name : {"pebble", "Qwen-Qwen3-0.6B", "Qwen3.5-4B", "Qwen3-Coder"}) {
    SCOPED_TRACE(name);
    std::ifstream file(folder / (std::string(name) + ".jinja"));
    if (!file) continue;
    ++n_templates;
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    const Result<ChatTemplate> chat_template = ChatTemplate::parse(source);
    ASSERT_OK(chat_template);
    const auto render = [&](const Json& messages) {
      const Result<std::string> text = chat_template->render(
          {{"messages", messages}, {"add_generation_prompt", true}, {"enable_thinking", true}}, 0);
      EXPECT_OK(text);
      return text ? *text : std::string();
    };
    const bool thinks = source.find("<think>") != std::string::npos;
    std::mt19937 random(5);
    const std::vector<std::string> texts = {"What is 37 + 58?", "a\n\nb", "日本語の文です。", "{\"a\": 1}",
                                            "<b>x</b>"};
    const auto any = [&] { return texts[random() % texts.size()]; };
    for (int history = 0; history < 20; ++history) {
      Json messages = Json::array();
      if (history % 2 == 0) messages.push_back({{"role", "system"}, {"content", any()}});
      for (int turn = 0; turn < 5; ++turn) {
        messages.push_back({{"role", turn > 0 && random() % 3 == 0 ? "tool" : "user"}, {"content", any()}});
        std::string before = render(messages);
        Json answer = {{"role", "assistant"}, {"content", any()}};
        if (thinks && random() % 2 == 0) answer["reasoning_content"] = any();
        messages.push_back(answer);
        if (thinks && !before.ends_with("<think>\n")) before += "<think>\n";
        if (thinks) before += answer.value("reasoning_content", "") + "\n</think>\n\n";
        before += answer["content"].get<std::string>() + "<|im_end|>\n";
        Json next = messages;
        next.push_back({{"role", "user"}, {"content", any()}});
        EXPECT_TRUE(without_thinking(render(next)).starts_with(without_thinking(before)))
            << before << "\n-----\n"
            << render(next);
      }
    }
  }
  if (n_templates == 0) GTEST_SKIP() << folder << " is not there";
}

TEST_F(TemplatePrefixes, AnOptionThatIsToggledEveryTurnCostsTheTailOnly) {
  Json talk = {{"messages", {{{"role", "system"}, {"content", "Be brief."}}}},
               {"add_generation_prompt", true}};
  for (int turn = 0; turn < 4; ++turn) {
    talk["messages"].push_back({{"role", "user"}, {"content", "What is 37 + 58?"}});
    talk["enable_thinking"] = turn % 2 == 0;
    const std::vector<int32_t> one = ids(talk);
    talk["enable_thinking"] = turn % 2 == 1;
    const std::vector<int32_t> other = ids(talk);
    EXPECT_GE(common(one, other), static_cast<int64_t>(one.size()) - 8);
    talk["messages"].push_back({{"role", "assistant"}, {"content", "95"}});
  }
}

}  // namespace
}  // namespace forebay
