#include "chat/chat_style.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(ChatStyle, SaysWhatATemplateWrites) {
  const ChatStyle xml =
      ChatStyle::of_template("<tool_call>\\n<function=' + f.name + '<parameter=' </think> enable_thinking");
  EXPECT_EQ(xml.tools, ToolStyle::kXml);
  EXPECT_TRUE(xml.reasons);
  EXPECT_TRUE(xml.can_switch_off);
  const ChatStyle json = ChatStyle::of_template(R"(<tool_call>\n{\"name\": , \"arguments\": )");
  EXPECT_EQ(json.tools, ToolStyle::kJson);
  EXPECT_FALSE(json.reasons);
  EXPECT_EQ(ChatStyle::of_template("<|im_start|>").tools, ToolStyle::kNone);
}

TEST(ChatStyle, OfPublishedTemplates) {
  const std::filesystem::path folder = FOREBAY_SOURCE_DIR "/../shared/data/templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "published templates are not here";
  const std::map<std::string, ToolStyle> expected = {
      {"Qwen3-Coder", ToolStyle::kXml},
      {"Qwen3.5-4B", ToolStyle::kXml},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", ToolStyle::kXml},
      {"pebble", ToolStyle::kXml},
      {"Qwen-Qwen3-0.6B", ToolStyle::kJson},
      {"Qwen-Qwen2.5-7B-Instruct", ToolStyle::kJson},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", ToolStyle::kJson},
      {"HuggingFaceTB-SmolLM3-3B", ToolStyle::kNone},
      {"GLM-4.6", ToolStyle::kNone},
      {"Kimi-K2-Thinking", ToolStyle::kNone},
      {"deepseek-ai-DeepSeek-V3.1", ToolStyle::kNone},
      {"deepseek-ai-DeepSeek-V3.2", ToolStyle::kNone},
      {"openai-gpt-oss-120b", ToolStyle::kNone},
      {"meta-llama-Llama-3.1-8B-Instruct", ToolStyle::kNone},
  };
  int n_read = 0;
  for (const auto& [name, style] : expected) {
    std::ifstream file(folder / (name + ".jinja"));
    if (!file) continue;
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(ChatStyle::of_template(source).tools, style) << name;
    ++n_read;
  }
  EXPECT_GT(n_read, 0);
}

}  // namespace
}  // namespace forebay
