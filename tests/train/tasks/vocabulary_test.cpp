#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "engine/gguf_vocabulary.h"
#include "train/tasks/char_vocabulary.h"
#include "train/tasks/task.h"

namespace forebay::train {
namespace {

TEST(CharVocabulary, TheEngineReadsTheSameIds) {
  for (const std::string_view name : task_names()) {
    const auto task = make_task(name).value();
    if (task->alphabet().empty()) continue;
    const CharVocabulary vocabulary(task->alphabet());
    GgufMetadata metadata;
    for (auto& [key, value] : vocabulary.gguf_metadata()) metadata.set(key, value);
    const Tokenizer tokenizer = Tokenizer::create(vocabulary_from_gguf(metadata).value()).value();
    EXPECT_EQ(tokenizer.n_tokens(), vocabulary.n_tokens());
    EXPECT_TRUE(tokenizer.is_stop(CharVocabulary::kEnd));
    for (uint64_t i = 0; i < 50; ++i) {
      const Item item = task->item(Split::kTrain, 1, i);
      const std::string text = item.prompt + item.answer;
      const std::vector<int32_t> ids = vocabulary.encode(text).value();
      EXPECT_EQ(tokenizer.encode(text), ids);
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
  }
}

TEST(CharVocabulary, NamesACharacterThatItLacks) {
  const CharVocabulary vocabulary("abc");
  EXPECT_EQ(vocabulary.encode("cab").value(), (std::vector<int32_t>{4, 2, 3}));
  const auto wrong = vocabulary.encode("abd");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "'abd': not in the model's alphabet 'abc'");
}

TEST(ChatTasks, PromptsAreWhatPebblesTemplateRenders) {
  const std::string path = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  EngineOptions options;
  options.model = path;
  options.threads = 1;
  const Engine engine = Engine::open(options).value();
  for (const std::string_view name : {"chat-arithmetic", "chat-tools"}) {
    const Item item = make_task(name).value()->item(Split::kTrain, 1, 0);
    // The user's text and the tools, taken from the prompt again.
    const size_t user = item.prompt.rfind("<|im_start|>user\n") + 17;
    const std::string text = item.prompt.substr(user, item.prompt.find("<|im_end|>", user) - user);
    std::string tools;
    if (const size_t at = item.prompt.find("<tools>\n"); at != std::string::npos) {
      tools = item.prompt.substr(at + 8, item.prompt.find("\n</tools>") - at - 8);
      for (size_t n = 0; (n = tools.find("\n{", n)) != std::string::npos; n += 2) tools.replace(n, 1, ",");
    }
    EXPECT_EQ(item.prompt, engine
                               .render_chat(R"({"messages":[{"role":"user","content":")" + text + R"("}],)" +
                                            (tools.empty() ? "" : R"("tools":[)" + tools + "],") +
                                            R"("add_generation_prompt":true})")
                               .value());
  }
}

}  // namespace
}  // namespace forebay::train
