// Templates from outside, and conversations: neither crashes, hangs or outgrows its limits, and a render
// repeats. Behind a zero byte, an input has a JSON context of its own.
#include <fstream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "tokenizer/chat_template.h"

namespace {

using Json = nlohmann::ordered_json;

const Json& recorded() {
  static const Json cases = [] {
    std::ifstream file(FOREBAY_TEST_DATA "/tokenizer/chat_template_cases.json");
    return Json::parse(file);
  }();
  return cases;
}

void render(const forebay::ChatTemplate& source, const Json& context) {
  forebay::TemplateLimits limits;
  limits.steps = 100'000;
  limits.output_bytes = 1 << 18;
  const forebay::Result<std::string> first = source.render(context, 1'795'955'696, limits);
  const forebay::Result<std::string> second = source.render(context, 1'795'955'696, limits);
  FUZZ_ASSERT(first.has_value() == second.has_value());
  if (first) {
    FUZZ_ASSERT(*first == *second);
    FUZZ_ASSERT(first->size() <= limits.output_bytes);
  } else {
    FUZZ_ASSERT(first.error().message == second.error().message);
    FUZZ_ASSERT(first.error().message.find('\n') == std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  const forebay::Result<forebay::ChatTemplate> parsed = forebay::ChatTemplate::parse(input.substr(0, end));
  if (!parsed) return 0;
  render(*parsed, recorded()["context"]);
  if (end == size) return 0;
  const Json context = Json::parse(input.substr(end + 1), nullptr, false);
  if (context.is_object()) render(*parsed, context);
  return 0;
}

FuzzSeeds fuzz_seeds() {
  FuzzSeeds seeds;
  for (const Json& one : recorded()["cases"]) seeds.inputs.push_back(one["template"]);
  using namespace std::string_literals;
  seeds.inputs.push_back(
      "{% for m in messages %}{{ m.role }}{{ m|tojson(indent=2) }}{% endfor %}\0"
      R"({"messages": [{"role": "user", "content": ["a", 1.5, null, true]}]})"s);
  seeds.tokens = {"{{ ",
                  " }}",
                  "{%- ",
                  " -%}",
                  "{% if ",
                  "{% else %}",
                  "{% endif %}",
                  "{% for i in ",
                  " in ",
                  " is ",
                  "not ",
                  " and ",
                  "|list",
                  "|map('",
                  "|sort",
                  "|tojson",
                  "loop",
                  "(",
                  ")",
                  "[",
                  "]",
                  "{",
                  "}",
                  "[::-1]",
                  ".x",
                  "()",
                  "**",
                  "//",
                  "~",
                  "'a'",
                  "\"%s\"",
                  "range(9)",
                  "caller()",
                  "{% endfor %}",
                  "{% macro m(a, b=1) %}",
                  "{% endmacro %}",
                  "{{ m(1) }}",
                  "namespace(",
                  "{% set ",
                  " = ",
                  "{% endset %}",
                  "{% call ",
                  "{% endcall %}",
                  "{% break %}",
                  "{# ",
                  " #}",
                  "items",
                  "users",
                  "nested",
                  "d.items()",
                  "|groupby('age')",
                  ".format(",
                  " if ",
                  " else ",
                  "recursive",
                  "varargs",
                  "kwargs",
                  "1e308",
                  "0x7f",
                  "99999999999999999999",
                  "\xc3\xa9",
                  "\\u00e9"};
  return seeds;
}
