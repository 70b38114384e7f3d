#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/result_matchers.h"
#include "tokenizer/chat_template.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

TEST(ChatTemplate, RendersOnSeveralThreads) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(
      "{% macro m(x) %}<{{ x ~ 'é' }}>{% endmacro %}{% for i in range(200) %}{{ m(i) }}{% endfor %}");
  ASSERT_OK(parsed);
  const std::string expected = *parsed->render(Json::object(), 0);
  std::vector<std::string> outputs(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& output : outputs)
      threads.emplace_back([&parsed, &output] { output = *parsed->render(Json::object(), 0); });
  }
  for (const std::string& output : outputs) EXPECT_EQ(output, expected);
}

}  // namespace
}  // namespace forebay
