// JSON schemas from outside: compiling neither crashes nor hangs, and what a compiled one writes is valid
// under it.
#include <memory>
#include <random>
#include <string_view>

#include <nlohmann/json.hpp>

#include "../constrain/random_text.h"
#include "../constrain/validator.h"
#include "constrain/schema_compiler.h"
#include "fuzz.h"

using namespace forebay;
using Json = nlohmann::ordered_json;

namespace {

/// The validator follows references without looking back.
bool has_loops(const Json& schema) {
  if (schema.is_object() && schema.contains("$ref")) return true;
  if (schema.is_structured())
    for (const Json& inner : schema)
      if (has_loops(inner)) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Json schema = Json::parse(data, data + size, nullptr, false);
  if (schema.is_discarded()) return 0;
  Result<Grammar> grammar = compile_schema(schema);
  if (!grammar) {
    FUZZ_ASSERT(grammar.error().message.find('\n') == std::string::npos);
    return 0;
  }
  Automaton automaton(std::make_shared<const Grammar>(std::move(*grammar)));
  if (automaton.distance(automaton.start()) > 5000) return 0;
  std::mt19937_64 random(size);
  const std::string text = random_text(automaton, random, 100);
  const Json value = Json::parse(text, nullptr, false);
  FUZZ_ASSERT(!value.is_discarded());
  if (!has_loops(schema)) FUZZ_ASSERT(find_violation(schema, value).empty());
  return 0;
}

FuzzSeeds fuzz_seeds() {
  FuzzSeeds seeds;
  for (int seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    seeds.inputs.push_back(random_schema(random, 3).dump());
  }
  seeds.inputs.push_back(
      R"({"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"l": {"$ref": "#/$defs/t"}, "v": {"const": 1}}}}})");
  seeds.inputs.push_back(
      R"({"oneOf": [{"type": "string", "pattern": "^(a|[^b-d]{2,3}\\w)*$"}, {"type": "null"}]})");
  seeds.tokens = {"\"type\":",
                  "\"object\"",
                  "\"string\"",
                  "\"number\"",
                  "\"integer\"",
                  "\"array\"",
                  "\"properties\":",
                  "\"required\":",
                  "\"items\":",
                  "\"prefixItems\":",
                  "\"anyOf\":",
                  "\"oneOf\":",
                  "\"$ref\":",
                  "\"#\"",
                  "\"enum\":",
                  "\"const\":",
                  "\"minimum\":",
                  "\"exclusiveMaximum\":",
                  "\"maxLength\":",
                  "\"minItems\":",
                  "\"pattern\":",
                  "\"additionalProperties\":",
                  "{",
                  "}",
                  "[",
                  "]",
                  ",",
                  "true",
                  "null",
                  "1e9",
                  "-0.5",
                  "(",
                  ")",
                  "*",
                  "+",
                  "{2,3}",
                  "[^",
                  "\\\\d"};
  return seeds;
}
