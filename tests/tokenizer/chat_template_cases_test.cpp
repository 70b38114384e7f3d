// Small templates on which this interpreter and Jinja2 must agree: what tools/make_template_fixtures.py
// recorded.
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tokenizer/chat_template.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// The error's line, "template line 12: ..."; 0 when it names none.
int line_of(const std::string& message) {
  constexpr std::string_view kPrefix = "template line ";
  return message.starts_with(kPrefix) ? std::atoi(message.c_str() + kPrefix.size()) : 0;
}

TEST(ChatTemplateCases, AgreeWithJinja2) {
  std::ifstream file(FOREBAY_TEST_DATA "/tokenizer/chat_template_cases.json");
  const Json recorded = Json::parse(file);
  std::map<std::string, int> n_by_topic;
  for (const Json& expected : recorded["cases"]) {
    const std::string source = expected["template"];
    SCOPED_TRACE(source);
    ++n_by_topic[expected["topic"]];
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    Result<std::string> output =
        parsed ? parsed->render(recorded["context"], recorded["now"]) : Result<std::string>(parsed.error());
    if (expected.contains("output")) {
      ASSERT_TRUE(output) << output.error().message;
      EXPECT_EQ(*output, expected["output"].get_ref<const std::string&>());
      continue;
    }
    // The words are ours; that it fails, and where, is not.
    ASSERT_FALSE(output) << "rendered as " << *output << ", but Jinja2 says " << expected["error"];
    EXPECT_EQ(output.error().code, parsed ? Code::kInvalidArgument : Code::kCorrupt);
    const int line = line_of(output.error().message);
    EXPECT_GE(line, 1) << output.error().message;
    EXPECT_EQ(output.error().message.find('\n'), std::string::npos);
    const int their_line = expected["line"];  // 0: not known
    EXPECT_EQ(line, their_line == 0 ? line : their_line) << output.error().message;
  }
  EXPECT_EQ(n_by_topic.size(), 21u);
}

}  // namespace
}  // namespace forebay
