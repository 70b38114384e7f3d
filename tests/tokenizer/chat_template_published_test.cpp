// Published chat templates, rendered beside Jinja2. They are not part of this repository: the test needs them
// in
// ../shared/data/templates, and python3 with jinja2.
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tokenizer/chat_template.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTemplates = FOREBAY_SOURCE_DIR "/../shared/data/templates";

/// What a command prints; absent when it fails.
std::optional<std::string> output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  std::array<char, 1 << 16> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.append(buffer.data(), n);
  if (pclose(pipe) != 0) return std::nullopt;
  return output;
}

Result<std::string> render_case(const Json& expected) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(expected["template"].get_ref<const std::string&>());
  if (!parsed) return std::move(parsed).error();
  return parsed->render(expected["context"], expected["now"]);
}

TEST(ChatTemplatePublished, RenderAsInJinja2) {
  if (!std::filesystem::is_directory(kTemplates)) GTEST_SKIP() << "no templates in " << kTemplates;
  if (!output_of("python3 -c 'import jinja2' 2>/dev/null")) GTEST_SKIP() << "python3 has no jinja2";
  const std::optional<std::string> expectations = output_of(
      "python3 '" FOREBAY_SOURCE_DIR "/tools/render_templates.py' '" + std::string(kTemplates) + "'");
  ASSERT_TRUE(expectations);
  int n_equal = 0, n_failed = 0;
  std::map<std::string, int> n_by_template;
  std::istringstream lines(*expectations);
  for (std::string line; std::getline(lines, line);) {
    const Json expected = Json::parse(line);
    const std::string name = expected["name"];
    SCOPED_TRACE(name + ", conversation " + std::to_string(n_by_template[name]++));
    const Result<std::string> output = render_case(expected);
    if (expected.contains("output")) {
      if (!output) {
        ADD_FAILURE() << output.error().message;
        continue;
      }
      const std::string& theirs = expected["output"].get_ref<const std::string&>();
      EXPECT_EQ(*output, theirs);
      n_equal += *output == theirs ? 1 : 0;
    } else {
      EXPECT_FALSE(output) << "Jinja2 says " << expected["error"];
      n_failed += output ? 0 : 1;
    }
  }
  for (const auto& [name, n] : n_by_template) EXPECT_EQ(n, 30) << name;
  EXPECT_GT(n_equal, n_failed);
  std::printf("%zu templates x 30 conversations: %d renderings equal, %d failures in both\n",
              n_by_template.size(), n_equal, n_failed);
}

}  // namespace
}  // namespace forebay
