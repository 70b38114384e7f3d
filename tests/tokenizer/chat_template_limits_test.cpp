// No template hangs, overflows the stack or takes unbounded memory: it fails, soon.
#include <ctime>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/result_matchers.h"
#include "tokenizer/chat_template.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

std::string repeated(std::string_view text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

/// Of a template that has to fail, and soon; the limits are low enough for sanitized builds.
Result<std::string> try_render(std::string_view source, const Json& context = Json::object(),
                               uint64_t n_steps = 1'000'000) {
  TemplateLimits limits;
  limits.steps = n_steps;
  limits.output_bytes = 4 << 20;
  const std::clock_t begin = std::clock();
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  const Result<std::string> output =
      parsed ? parsed->render(context, 0, limits) : Result<std::string>(parsed.error());
  // Of this process, so that a busy machine does not count.
#ifdef __SANITIZE_THREAD__
  constexpr int kSeconds = 60;
#else
  constexpr int kSeconds = 10;
#endif
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, kSeconds) << source.substr(0, 200);
  return output;
}

constexpr Code kFailed = Code::kInvalidArgument;

TEST(ChatTemplateLimits, Nesting) {
  constexpr size_t kMany = 20'000;
  const auto too_deep = [](const std::string& source) {
    return fails_with(try_render(source), Code::kCorrupt, "nested more than");
  };
  EXPECT_TRUE(too_deep("{{ " + repeated("(", 1'000'000) + "1" + repeated(")", 1'000'000) + " }}"));
  EXPECT_TRUE(too_deep("{{ " + repeated("[", kMany) + repeated("]", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{{ " + repeated("{1:", kMany) + "1" + repeated("}", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{{ " + repeated("- ", kMany) + "1 }}"));
  EXPECT_TRUE(too_deep("{{ " + repeated("not ", kMany) + "1 }}"));
  EXPECT_TRUE(too_deep("{{ a" + repeated(".a", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{{ a" + repeated("()", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{{ a" + repeated("|abs", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{{ a" + repeated("[a", kMany) + repeated("]", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{{ " + repeated("1 if 1 else ", kMany) + "1 }}"));
  EXPECT_TRUE(too_deep("{{ " + repeated("f(x=", kMany) + repeated(")", kMany) + " }}"));
  EXPECT_TRUE(too_deep("{% set " + repeated("(", kMany) + repeated(")", kMany) + " %}"));
  EXPECT_TRUE(too_deep(repeated("{% if 1 %}", kMany)));
  EXPECT_TRUE(too_deep(repeated("{% for a in b %}", kMany)));
  EXPECT_TRUE(too_deep(repeated("{% macro m() %}", kMany)));
}

TEST(ChatTemplateLimits, LongIsNotDeep) {
  const Result<std::string> sum = try_render("{{ 0" + repeated(" + 1", 5000) + " }}");
  ASSERT_OK(sum);
  EXPECT_EQ(*sum, "5000");
  ASSERT_OK(try_render("{{ 'a'" + repeated(" ~ 'b'", 5000) + " }}"));
  ASSERT_OK(try_render("{{ 1" + repeated(" or 1", 5000) + repeated(" < 2", 5000) + " }}"));
  ASSERT_OK(try_render("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% endif %}"));
  ASSERT_OK(try_render("{{ [" + repeated("1,", 50'000) + "]|length }}"));
}

TEST(ChatTemplateLimits, WithinTheLimitsOfNestingAllIsWell) {
  ASSERT_OK(try_render("{{ " + repeated("(", 150) + "1" + repeated(")", 150) + " }}"));
  ASSERT_OK(try_render(repeated("{% if 1 %}", 90) + repeated("{% endif %}", 90)));
  // The deepest tree there can be, in the deepest block.
  const std::string deep = "{{ a" + repeated("[0]", 100) + " }}";
  EXPECT_TRUE(
      fails_with(try_render(repeated("{% if 1 %}", 90) + deep + repeated("{% endif %}", 90)), kFailed));
}

TEST(ChatTemplateLimits, Recursion) {
  EXPECT_TRUE(fails_with(try_render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), kFailed,
                         "nested more than 200"));
  EXPECT_TRUE(fails_with(try_render("{% macro m(f) %}{{ f(f) }}{% endmacro %}{{ m(m) }}"), kFailed,
                         "nested more than"));
  EXPECT_TRUE(fails_with(try_render("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"), kFailed,
                         "nested more"));
  EXPECT_TRUE(
      fails_with(try_render("{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}{{ m() }}"),
                 kFailed, "nested more than"));
  EXPECT_TRUE(
      fails_with(try_render("{% macro m(x=m()) %}{% endmacro %}{{ m() }}"), kFailed, "nested more than"));
  EXPECT_TRUE(fails_with(try_render("{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = "
                                    "ns.x|map('string') %}{% endfor %}"
                                    "{{ ns.x|list }}"),
                         kFailed, "nested more than"));
}

TEST(ChatTemplateLimits, RecursionOnTheStackOfAThread) {
  // The deepest allowed recursion through the widest statement fits what threads get.
  const Result<ChatTemplate> parsed = ChatTemplate::parse(
      "{% macro m(x) %}{% for i in [x] if i %}{% filter upper %}{% set y %}{{ [m(x)|trim, {'a': (x,)}]|list "
      "}}{% endset %}"
      "{{ y }}{% endfilter %}{% endfor %}{% endmacro %}{{ m(1) }}");
  ASSERT_OK(parsed);
  TemplateLimits limits;
  limits.depth = 1'000'000;  // more than is allowed
  std::jthread([&] {
    EXPECT_TRUE(fails_with(parsed->render(Json::object(), 0, limits), kFailed, "nested more than 1000"));
  }).join();
}

TEST(ChatTemplateLimits, Loops) {
  EXPECT_TRUE(
      fails_with(try_render("{% for i in range(10**12) %}{% endfor %}"), kFailed, "more than 1000000 steps"));
  EXPECT_TRUE(fails_with(try_render("{% set l = [1] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}"),
                         kFailed, "steps"));
  EXPECT_TRUE(fails_with(try_render("{% for i in range(10**12) if i < 0 %}{% endfor %}"), kFailed, "steps"));
  EXPECT_TRUE(fails_with(try_render("{{ range(10**12)|list }}"), kFailed));
  EXPECT_TRUE(fails_with(try_render("{{ range(10**12)|sum }}"), kFailed, "steps"));
  EXPECT_TRUE(fails_with(try_render("{{ range(10**12)|select('lt', 0)|first }}"), kFailed, "steps"));
  EXPECT_TRUE(fails_with(try_render("{{ -1.5 in range(10**12) }}"), kFailed, "steps"));
  EXPECT_TRUE(fails_with(try_render("{{ range(10**12)|reverse|list }}"), kFailed));
  EXPECT_TRUE(fails_with(try_render("{{ range(10)|slice(10**15)|list }}"), kFailed));
  EXPECT_TRUE(fails_with(try_render("{{ range(10)|batch(10**15, 0)|list }}"), kFailed));
  EXPECT_TRUE(fails_with(try_render("{{ f(*range(10**12)) }}"), kFailed));
  EXPECT_TRUE(fails_with(try_render("{% set ns = namespace(x=range(10**6)) %}{% for i in range(10**9) %}"
                                    "{% set ns.x = ns.x|list %}{% endfor %}"),
                         kFailed, "steps"));
}

TEST(ChatTemplateLimits, LongTexts) {
  for (const char* expression : {"'a' * 10**9",
                                 "10**9 * 'ab'",
                                 "'a' * 10**30",
                                 "[0] * 10**9",
                                 "(1, 2) * 10**18",
                                 "'a'|center(10**9)",
                                 "'a'.ljust(10**18)",
                                 "'%1000000000d' % 1",
                                 "'%.1000000000f' % 1",
                                 "'%*d' % (10**9, 1)",
                                 "'{:1000000000}'.format(1)",
                                 "'{:01000000000,}'.format(1)",
                                 "'{:.1000000000f}'.format(1.0)",
                                 "'a'.zfill(10**9)",
                                 "('a' * 10**5).replace('a', 'b' * 10**5)",
                                 "('a' * 10**5)|replace('', 'b' * 10**5)",
                                 "('a' * 10**4 + 'x')|indent(10**9)",
                                 "('\\n' * 10**5)|indent(10**6, blank=true)",
                                 "'\\t'.expandtabs(10**9)",
                                 "[1]|tojson(indent=10**9)",
                                 "[[1]]|tojson(indent='x' * 10**7 * 2)",
                                 "('a' * 10**5).join('b' * 10**3)",
                                 "('x' * 10**4)|wordwrap(1, wrapstring='y' * 10**5)",
                                 "('a' * 10**6 * 3)|list|join('b')"})
    EXPECT_TRUE(fails_with(try_render("{{ " + std::string(expression) + " }}"), kFailed)) << expression;
}

/// `count` times x = step, then `end`.
std::string grown(std::string_view start, std::string_view step, int count, std::string_view end) {
  return "{% set ns = namespace(x=" + std::string(start) + ") %}{% for i in range(" + std::to_string(count) +
         ") %}{% set ns.x = " + std::string(step) + " %}{% endfor %}" + std::string(end);
}

TEST(ChatTemplateLimits, Growth) {
  EXPECT_TRUE(fails_with(try_render(grown("'a'", "ns.x + ns.x", 99, "")), kFailed, "over the limit"));
  EXPECT_TRUE(fails_with(try_render(grown("'a'", "ns.x ~ ns.x", 99, "")), kFailed, "over the limit"));
  EXPECT_TRUE(fails_with(try_render(grown("[1]", "ns.x + ns.x", 99, "")), kFailed));
  EXPECT_TRUE(
      fails_with(try_render(grown("[]", "ns.x + ['a' * 10**6 ~ i]", 99, ""), Json::object(), 9'000'000),
                 kFailed, "values hold more than"));
  EXPECT_TRUE(fails_with(
      try_render("{% set d = {} %}{% for i in range(10**8) %}{% set _ = d.update({i: i}) %}{% endfor %}"),
      kFailed));
  EXPECT_TRUE(fails_with(try_render("{% for i in range(10**9) %}{{ 'a' * 10**6 }}{% endfor %}"), kFailed,
                         "output is over"));
  EXPECT_TRUE(fails_with(
      try_render(repeated("{% filter upper %}{{ 'a' * 10**6 }}", 9) + repeated("{% endfilter %}", 9)),
      kFailed, "output is over"));
}

// Values that share their parts are small in memory and huge when walked.
TEST(ChatTemplateLimits, SharedParts) {
  for (const char* end : {"{{ ns.x }}", "{{ ns.x|string|length }}", "{{ ns.x|tojson }}", "{{ ns.x == ns.y }}",
                          "{{ ns.x in [ns.y] }}", "{{ ns.x < ns.y }}", "{{ [ns.x, ns.y]|sort }}"}) {
    const std::string source =
        "{% set ns = namespace(x=[], y=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% set ns.y = [ns.y, ns.y] %}{% endfor %}" +
        std::string(end);
    EXPECT_TRUE(fails_with(try_render(source), kFailed)) << end;
  }
  EXPECT_TRUE(fails_with(try_render(grown("()", "(ns.x, ns.x)", 60, "{{ {ns.x: 1} }}")), kFailed));
  EXPECT_TRUE(fails_with(try_render(grown("()", "(ns.x, ns.x)", 60, "{{ {}[ns.x] }}")), kFailed));
}

TEST(ChatTemplateLimits, DeepValues) {
  constexpr int kDeep = 50'000;
  for (const char* step :
       {"[ns.x]", "(ns.x,)", "{'a': ns.x}", "namespace(x=ns.x)", "{'a': ns.x}.items()", "joiner(ns.x)",
        "cycler(ns.x)", "[ns.x].append", "ns.x|default(1)|map('string')"}) {
    // To make and to drop them is no recursion.
    ASSERT_OK(try_render(grown("[]", step, kDeep, ""), Json::object(), 5'000'000)) << step;
  }
  for (const char* end : {"{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.x == ns.y }}", "{{ [ns.x] < [ns.y] }}",
                          "{{ ns.x in [ns.y] }}"}) {
    const std::string source =
        "{% set ns = namespace(x=[], y=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}"
        "{% set ns.y = [ns.y] %}{% endfor %}" +
        std::string(end);
    EXPECT_TRUE(fails_with(try_render(source), kFailed, "nested more than")) << end;
  }
  EXPECT_TRUE(
      fails_with(try_render(grown("()", "(ns.x,)", 5000, "{{ {ns.x: 1} }}")), kFailed, "nested more than"));
}

TEST(ChatTemplateLimits, DeepContext) {
  Json deep = Json::array();
  for (int i = 0; i < 100'000; ++i) {
    Json outer = Json::array();
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  Json context = Json::object();
  context["x"] = std::move(deep);
  EXPECT_TRUE(fails_with(try_render("{{ x }}", context), kFailed, "nested more than"));
}

TEST(ChatTemplateLimits, HostileSearches) {
  // Quadratic for a simple search.
  ASSERT_OK(try_render(
      "{{ ('a' * 400000 ~ 'b') in ('a' * 800000) }}{{ ('a' * 800000).rfind('b' ~ 'a' * 400000) }}"
      "{{ ('a' * 800000).rsplit('b' ~ 'a' * 400000, 5)|length }}{{ ('a' * 800000).count('a' * 400000 "
      "~ 'b') }}"));
  EXPECT_TRUE(fails_with(
      try_render("{% set s = 'a' * 10**6 %}{% for i in range(10**6) %}{{ s.count('b') }}{% endfor %}"),
      kFailed, "steps"));
  EXPECT_TRUE(fails_with(
      try_render("{% set s = 'a' * 10**6 %}{% for i in range(10**6) %}{{ s == s ~ '' }}{% endfor %}"),
      kFailed));
}

TEST(ChatTemplateLimits, AreTheCallers) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse("{{ x }}{% for i in range(100) %}.{% endfor %}");
  ASSERT_OK(parsed);
  const Json context = {{"x", std::string(5000, 'a')}};
  TemplateLimits limits;
  limits.output_bytes = 5100;
  ASSERT_OK(parsed->render(context, 0, limits));
  limits.output_bytes = 5099;
  EXPECT_TRUE(fails_with(parsed->render(context, 0, limits), kFailed, "over the limit of 5099 bytes"));
  limits = {};
  limits.steps = 50;
  EXPECT_TRUE(fails_with(parsed->render(context, 0, limits), kFailed, "more than 50 steps"));
  limits = {};
  limits.depth = 1;
  EXPECT_TRUE(fails_with(parsed->render(context, 0, limits), kFailed, "nested more than 1 levels"));
}

// The resolution of names is not quadratic in the number of conditions.
TEST(ChatTemplateLimits, ManyNames) {
  std::string source;
  for (int i = 0; i < 20'000; ++i) {
    const std::string n = std::to_string(i);
    source += "{% if a" + n + " %}{% set b" + n + " = 1 %}{% endif %}";
  }
  ASSERT_OK(try_render(source));
}

}  // namespace
}  // namespace forebay
