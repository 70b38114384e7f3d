#include "tokenizer/chat_template.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/result_matchers.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> rendered(std::string_view source, const Json& context = Json::object(),
                             const TemplateLimits& limits = {}) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed) return parsed.error();
  return parsed->render(context, 0, limits);
}

TEST(ChatTemplate, RendersAConversation) {
  const Result<std::string> text = rendered(
      "{%- for message in messages %}\n"
      "    {{- '<|im_start|>' + message.role + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}\n"
      "{%- endfor %}\n"
      "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}\n",
      Json::parse(
          R"({"messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "日本?"}],
                      "add_generation_prompt": true})"));
  ASSERT_OK(text);
  EXPECT_EQ(
      *text,
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n日本?<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, RaisesWhatTheTemplateRaises) {
  EXPECT_TRUE(fails_with(rendered("a\n{{ raise_exception('no\nway') }}"), Code::kInvalidArgument,
                         "template line 2: no way"));
}

TEST(ChatTemplate, NamesWhatIsUndefined) {
  EXPECT_TRUE(fails_with(rendered("\n\n{{ messages[0] }}"), Code::kInvalidArgument,
                         "template line 3: 'messages' is undefined"));
  EXPECT_TRUE(fails_with(rendered("{{ m.a.b }}", {{"m", Json::object()}}), Code::kInvalidArgument,
                         "template line 1: 'dict object' has no attribute 'a'"));
}

TEST(ChatTemplate, NamesWhatItExpected) {
  EXPECT_TRUE(fails_with(ChatTemplate::parse("\n{% if a %}\n{% endfor %}"), Code::kCorrupt,
                         "template line 3: expected 'elif', 'else' or 'endif', got 'endfor'"));
  EXPECT_TRUE(fails_with(ChatTemplate::parse("{% for a in b %}\n\n"), Code::kCorrupt, "template line 2",
                         "got the end of the template (the block opened on line 1)"));
  EXPECT_TRUE(fails_with(ChatTemplate::parse("{{ a b }}"), Code::kCorrupt,
                         "template line 1: expected '}}', got 'b'"));
  EXPECT_TRUE(fails_with(ChatTemplate::parse("{{ a|nope }}"), Code::kCorrupt,
                         "template line 1: no filter named 'nope'"));
  EXPECT_TRUE(
      fails_with(ChatTemplate::parse("{% include 'x' %}"), Code::kCorrupt, "tag 'include' is not supported"));
}

TEST(ChatTemplate, WantsAnObject) {
  EXPECT_TRUE(
      fails_with(rendered("", Json::array()), Code::kInvalidArgument, "must be an object, not array"));
}

TEST(ChatTemplate, FormatsTheTimeItIsGiven) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse("{{ strftime_now('%d %b %Y %H:%M') }}");
  ASSERT_OK(parsed);
  EXPECT_EQ(*parsed->render(Json::object(), 1'795'955'696), "29 Nov 2026 12:34");
  EXPECT_EQ(*parsed->render(Json::object(), 0), "01 Jan 1970 00:00");
}

// The sandbox in which chat templates usually run looks names up in dicts here, as templates do everywhere
// else.
TEST(ChatTemplate, FormatsAttributesOfDicts) {
  EXPECT_EQ(*rendered("{{ '{0.name}'.format(user) }}", {{"user", {{"name", "Ann"}}}}), "Ann");
}

TEST(ChatTemplate, RepairsInvalidUtf8) {
  EXPECT_EQ(*rendered("a\xff{{ x }}", {{"x", "b\xc3"}}),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
}

TEST(ChatTemplate, KeepsUnsignedIntegers) {
  EXPECT_EQ(*rendered("{{ x }} {{ x|tojson }} {{ x + 1 }}", {{"x", UINT64_MAX}}),
            "18446744073709551615 18446744073709551615 18446744073709551616");
  EXPECT_TRUE(fails_with(rendered("{{ 2 ** 127 }}"), Code::kInvalidArgument, "integer beyond 128 bits"));
}

TEST(ChatTemplate, FreesCycles) {
  // Leaks show under the address sanitizer.
  ASSERT_OK(rendered(
      "{% set l = [] %}{% set _ = l.append(l) %}{% set ns = namespace() %}{% set ns.self = ns %}"
      "{% macro m() %}{% macro n() %}{{ m }}{% endmacro %}{% set ns.n = n %}{% endmacro %}{{ m() }}"
      "{% set lazy = l|map('string') %}{% set _ = l.append(lazy) %}"
      "{% for i in [[1]] recursive %}{% set ns.loop = loop %}{% set c = loop.cycle %}"
      "{% set ns.c = c %}{% endfor %}{% set d = {} %}{% set _ = d.update({'d': d, 'v': d.items()}) %}"));
}

}  // namespace
}  // namespace forebay
