// forebay tokenize and forebay template.
#include <fstream>

#include <gtest/gtest.h>

#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

Finished tokenize(std::vector<std::string> arguments, const Surroundings& surroundings = {}) {
  arguments.insert(arguments.begin(), {"tokenize", "-m", scripted_model()});
  return run_program(arguments, surroundings);
}

TEST(Tokenize, PrintsIdsAsJson) {
  EXPECT_EQ(tokenize({"--json", "hi<think>"}).out, "{\"ids\": [104, 105, 259]}\n");
  EXPECT_EQ(tokenize({"--json", "<|im_end|>"}).out, "{\"ids\": [258]}\n");
  EXPECT_EQ(tokenize({"--json", "-"}, {.input = "a\n"}).out, "{\"ids\": [97, 10]}\n");
  EXPECT_EQ(tokenize({"--json"}, {.input = "ab"}).out, "{\"ids\": [97, 98]}\n");
  EXPECT_EQ(tokenize({"--json", "--", "-v"}).out, "{\"ids\": [45, 118]}\n");
  EXPECT_EQ(tokenize({"--json", ""}).out, "{\"ids\": []}\n");
}

TEST(Tokenize, ControlTokensCanBeText) {
  // User-defined tokens are matched either way.
  EXPECT_EQ(tokenize({"--no-special", "--json", "<|im_end|><think>"}).out,
            "{\"ids\": [60, 124, 105, 109, 95, 101, 110, 100, 124, 62, 259]}\n");
}

TEST(Tokenize, ListsPieces) {
  EXPECT_EQ(tokenize({"a\n\xc3\xa9<|im_end|>"}).out,
            "     97  'a'\n     10  '\\x0a'\n    195  '\\xc3'\n    169  '\\xa9'\n    258  '<|im_end|>'\n");
}

TEST(Tokenize, AddsTheTokenThatTheFileAsksFor) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "bos.gguf").string();
  write_scripted_model(file, {.add_bos = true});
  EXPECT_EQ(run_program({"tokenize", "-m", file, "--json", "a"}).out, "{\"ids\": [256, 97]}\n");
}

TEST(Tokenize, DecodesAgain) {
  EXPECT_EQ(tokenize({"--decode", "104,105,259,258"}).out, "hi<think><|im_end|>");
  EXPECT_EQ(tokenize({"--decode", "104,105,259,258", "--no-special"}).out, "hi<think>");
  EXPECT_EQ(tokenize({"--decode", "-", "--json"}, {.input = "{\"ids\": [104, 10]}"}).out,
            "{\"text\": \"h\\u000a\"}\n");
  EXPECT_TRUE(is_error(tokenize({"--decode", "104,261"}), 1, {"261", "vocabulary"}));
  EXPECT_TRUE(is_error(tokenize({"--decode", "104,x"}), 1, {"104,x"}));
}

class Template : public ::testing::Test {
 protected:
  Finished render(const std::string& source, const std::string& json) {
    std::ofstream(directory_ / "t.jinja", std::ios::binary) << source;
    return run_program({"template", "--template", (directory_ / "t.jinja").string(), "--json", "-"},
                       {.input = json});
  }
  TemporaryDirectory directory_;
};

TEST_F(Template, PrintsExactlyTheRendering) {
  EXPECT_EQ(render("{{ messages[0].content }}", R"({"messages": [{"content": "a\n\n"}]})").out, "a\n\n");
  EXPECT_EQ(render("no line end", "{}").out, "no line end");
  EXPECT_EQ(render("{{ bos_token }}|{{ x }}", R"({"bos_token": "<s>", "x": "東京"})").out, "<s>|東京");
}

TEST_F(Template, TheClockCanBeSet) {
  const std::string source = "{{ strftime_now('%Y-%m-%d %H:%M:%S') }}{{ now }}";
  EXPECT_EQ(render(source, R"({"now": "2026-11-29"})").out, "2026-11-29 00:00:00");
  EXPECT_EQ(render(source, R"({"now": "2026-11-29T13:05:09"})").out, "2026-11-29 13:05:09");
  EXPECT_EQ(render(source, R"({"now": "2026-11-29T13:05:09Z"})").out, "2026-11-29 13:05:09");
  EXPECT_TRUE(is_error(render(source, R"({"now": "tomorrow"})"), 1, {"now", "'tomorrow'"}));
}

TEST_F(Template, ErrorsNameLineAndReason) {
  EXPECT_TRUE(is_error(render("a\n{% if %}", "{}"), 1, {"t.jinja", "line 2"}));
  EXPECT_TRUE(is_error(render("a\nb\n{{ raise_exception('no tools') }}", "{}"), 1,
                       {"t.jinja", "line 3", "no tools"}));
  EXPECT_TRUE(is_error(render("a", "{\"messages\": "), 1, {"-: ", "parse error"}));
  EXPECT_TRUE(is_error(render("a", "[1]"), 1, {"not a JSON object"}));
}

TEST_F(Template, AModelBringsItsTemplateAndTokens) {
  const std::string json =
      R"({"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": true, "enable_thinking": false})";
  std::ofstream(directory_ / "chat.json") << json;
  const std::string file = (directory_ / "chat.json").string();
  EXPECT_EQ(run_program({"template", "-m", scripted_model(), "--json", file}).out,
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think></think>");
  const std::string model = (directory_ / "m.gguf").string();
  write_scripted_model(model, {.chat_template = "{{ bos_token }} {{ eos_token }}"});
  EXPECT_EQ(run_program({"template", "-m", model, "--json", file}).out, "<|endoftext|> <|im_end|>");
  EXPECT_EQ(run_program({"template", "-m", model, "--json", "-"}, {.input = R"({"bos_token": "B"})"}).out,
            "B <|im_end|>");
}

}  // namespace
}  // namespace forebay::cli
