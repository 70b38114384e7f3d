// Why earlier turns can be reused at all: the next prompt of a conversation begins with the one before it, up
// to where its answer began; the answer itself returns as it was written but for its reasoning.
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "forebay/engine.h"

#include "engine/engine_impl.h"
#include "engine/session_impl.h"
#include "support/result_matchers.h"

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
  std::vector<int32_t> ids(const Json& talk) {
    return engine_->tokenize(engine_->render_chat(talk.dump()).value()).value();
  }
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
      const std::vector<int32_t> before = ids(talk);
      Json answer = {{"role", "assistant"}, {"content", any()}};
      if (random() % 2 == 0) answer["reasoning_content"] = any();
      talk["messages"].push_back(answer);
      Json next = talk;
      next["messages"].push_back({{"role", "user"}, {"content", any()}});
      const std::vector<int32_t> after = ids(next);
      EXPECT_GE(common(before, after), last_turn(before, turn_token)) << next.dump(1);
    }
  }
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
