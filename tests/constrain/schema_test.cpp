// What compiled schemas read and refuse, byte by byte.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "constrain/automaton.h"
#include "constrain/schema_compiler.h"
#include "random_text.h"
#include "validator.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

std::shared_ptr<const Grammar> grammar_of(const std::string& schema) {
  Result<Grammar> grammar = compile_schema(Json::parse(schema));
  EXPECT_TRUE(grammar) << schema << ": " << grammar.error().message;
  return grammar ? std::make_shared<const Grammar>(std::move(*grammar)) : nullptr;
}

bool reads(Automaton& automaton, std::string_view text) {
  StateId state = automaton.start();
  for (const char c : text) {
    state = automaton.next(state, static_cast<uint8_t>(c));
    if (state == Automaton::kDead) return false;
  }
  return automaton.accepting(state);
}

struct Row {
  std::string schema;
  std::vector<std::string> yes;
  std::vector<std::string> no;
};

const std::vector<Row> kRows = {
    {R"({"type": "null"})", {"null", "\n\nnull"}, {"nul", "0", "\n\n\nnull", "null "}},
    {R"({"type": "boolean"})", {"true", "false"}, {"True", "1"}},
    {R"({"type": "integer"})",
     {"0", "-1", "123456789012345678"},
     {"01", "-0", "1.0", "1e3", "+1", "1234567890123456789"}},
    {R"({"type": "number"})",
     {"0", "-0.5", "1e10", "2.5E-07", "-0"},
     {".5", "1.", "00", "1e100", "NaN", "--1"}},
    {R"({"type": "integer", "minimum": 3, "maximum": 112})",
     {"3", "9", "10", "99", "100", "112"},
     {"2", "113", "0", "-3", "200", "1120"}},
    {R"({"type": "integer", "minimum": -12, "maximum": 5})",
     {"-12", "-9", "-1", "0", "5"},
     {"-13", "-0", "6", "-20", "-100"}},
    {R"({"type": "integer", "exclusiveMinimum": 0})", {"1", "10", "999999999999999999"}, {"0", "-1"}},
    {R"({"type": "integer", "maximum": -5})", {"-5", "-6", "-10"}, {"-4", "0", "5"}},
    {R"({"type": "integer", "minimum": 0.5, "maximum": 2.5})", {"1", "2"}, {"0", "3"}},
    {R"({"type": "number", "minimum": 0, "maximum": 1})",
     {"0", "1", "0.5", "0.000001", "1.0", "1.000000"},
     {"1.1", "-0.1", "2", "1.0000001"}},
    {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
     {"0.1", "0.000001", "0.999999"},
     {"0", "1", "0.0", "1.0"}},
    {R"({"type": "number", "minimum": -1.25, "maximum": 10.5})",
     {"-1.25", "-1.249", "-1", "-0.5", "0", "10.5", "10.49", "9.99"},
     {"-1.26", "10.51", "11", "-2"}},
    {R"({"minimum": 1000000000000})", {"1000000000000", "2000000000000.5"}, {"999999999"}},
    {R"({"type": "string"})",
     {R"("")", R"("a b")", R"("\n\"\\\/")", R"("\u00e9")", R"("\ud83d\uDE00")", "\"\xc3\xa9\"",
      "\"\xf0\x9f\x98\x80\""},
     {R"("a)", "\"a\nb\"", R"("\x")", R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", "\"\xc3\"",
      "\"\xed\xa0\x80\"", "\"\xff\""}},
    {R"({"type": "string", "minLength": 2, "maxLength": 3})",
     {R"("ab")", R"("abc")", "\"\xc3\xa9\xf0\x9f\x98\x80\"", R"("\n\u0041")"},
     {R"("a")", R"("abcd")", R"("")"}},
    {R"({"type": "string", "pattern": "^[a-c]{2}\\d+$"})",
     {R"("ab1")", R"("cc123")"},
     {R"("ab")", R"("abd1")", R"("xab1")"}},
    {R"({"pattern": "b"})", {R"("b")", R"("abc")"}, {R"("a")"}},
    {R"({"pattern": "^(a|bc)*$"})", {R"("")", R"("abca")"}, {R"("b")"}},
    {R"({"pattern": "^[^\"a]\\.\\W$"})",
     {R"("b.-")", R"("\\.\"")", "\"\xc3\xa9.-\""},
     {R"("a.-")", R"("bx-")", R"("b.w")"}},
    {R"({"type": "string", "format": "date"})", {R"("2024-02-28")"}, {R"("2024-13-01")", R"("2024-2-1")"}},
    {R"({"enum": ["a", 1, null, {"x": [1]}]})", {R"("a")", "1", "null", R"({"x":[1]})"}, {R"("b")", "2"}},
    {R"({"enum": ["a", 1], "type": "integer"})", {"1"}, {R"("a")"}},
    {R"({"const": "x\"y"})", {R"("x\"y")"}, {R"("x")"}},
    {R"({"type": ["integer", "null"]})", {"1", "null"}, {R"("a")"}},
    {R"({"anyOf": [{"type": "integer"}, {"type": "string"}]})", {"1", R"("a")"}, {"null"}},
    {R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", R"("a")"}, {"null"}},
    {R"({"type": "object"})",
     {"{}", R"({"a":1})", R"({"a": {"b": [1, "x"]}, "c": null})", "{\n  \"a\": 1,\n  \"b\": 2\n}"},
     {"[]", "{", R"({"a"})", "{a: 1}", R"({"a":1,})", "{ }"}},
    {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]})",
     {R"({"a":1})", R"({"a": 1, "b": "x"})"},
     {"{}", R"({"b": "x"})", R"({"b": "x", "a": 1})", R"({"a": 1, "c": 2})"}},
    {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})",
     {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
     {R"({"b":1,"a":2})", R"({"a":1,"a":1})"}},
    {R"({"properties": {"ab": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}})",
     {"{}", R"({"ab":1})", R"({"ab":1,"a":true})", R"({"abc":true,"x":false})", R"({"":true})",
      "{\"\xc3\xa9\":true}"},
     {R"({"ab":true})", R"({"ab":1,"ab":true})", R"({"x":1})"}},
    {R"({"properties": {"é": {"type": "integer"}}, "additionalProperties": true})",
     {R"({"é":1})", R"({"ée":"x"})", R"({"e":"x"})"},
     {R"({"é":"x"})", "{\"\xc3\":1}"}},
    {R"({"type": "object", "required": ["z"]})", {R"({"z":[1]})"}, {"{}"}},
    {R"({"type": "array"})", {"[]", "[1, \"a\", []]", "[\n 1\n]"}, {"[1,]", "[,1]", "{}"}},
    {R"({"items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
     {"[1]", "[1,2,3]"},
     {"[]", "[1,2,3,4]", "[\"a\"]"}},
    {R"({"items": {"type": "integer"}, "minItems": 2})", {"[1,2]", "[1,2,3,4]"}, {"[1]"}},
    {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
    {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 1})",
     {"[1]", "[1,\"a\"]"},
     {"[]", "[\"a\"]", "[1,\"a\",2]"}},
    {R"({"prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}})",
     {"[]", "[1]", "[1,true,false]"},
     {"[true]", "[1,1]"}},
    {R"({"prefixItems": [{"type": "integer"}], "items": false})", {"[1]"}, {"[1,1]"}},
    {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"v": {"type": "integer"}, "l": {"$ref": "#/$defs/tree"}}, "required": ["v"]}}})",
     {R"({"v":1})", R"({"v":1,"l":{"v":2,"l":{"v":3}}})"},
     {"{}", R"({"v":1,"l":{}})"}},
    {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", {"null"}, {"1"}},
    {R"({"allOf": [{"type": "null"}], "description": "x", "title": "y", "default": 1})", {"null"}, {"1"}},
    {R"({"type": "array", "uniqueItems": false, "items": {"type": "null"}})", {"[null,null]"}, {"[1]"}},
    {R"({})", {"1", "[]", "{\"a\":null}"}, {"", "x"}},
    {R"(true)", {"1"}, {"x"}},
};

TEST(Schema, ReadsWhatIsValid) {
  for (const Row& row : kRows) {
    const auto grammar = grammar_of(row.schema);
    ASSERT_TRUE(grammar);
    Automaton automaton(grammar);
    for (const std::string& text : row.yes) {
      EXPECT_TRUE(reads(automaton, text)) << row.schema << " should read " << text;
      if (row.schema.find(R"("#"})") != std::string::npos) continue;  // the validator would not return
      EXPECT_EQ(find_violation(Json::parse(row.schema), Json::parse(text)), "") << "the validator disagrees";
    }
    for (const std::string& text : row.no)
      EXPECT_FALSE(reads(automaton, text)) << row.schema << " reads " << text;
  }
}

TEST(Schema, NamesWhatItCannotKeep) {
  const auto message = [](const std::string& schema) {
    const Result<Grammar> grammar = compile_schema(Json::parse(schema));
    return grammar ? "" : grammar.error().message;
  };
  const std::pair<const char*, const char*> rows[] = {
      {R"({"not": {}})", "schema #: keyword 'not' is not supported"},
      {R"({"properties": {"a": {"multipleOf": 2}}})",
       "schema #/properties/a: keyword 'multipleOf' is not supported"},
      {R"({"items": {"uniqueItems": true}})", "schema #/items: keyword 'uniqueItems' is not supported"},
      {R"({"type": "thing"})",
       "schema #: type: expected one of null, boolean, integer, number, string, array, object, or a list of "
       "them"},
      {R"({"$ref": "#/$defs/a"})", "schema #: $ref: nothing at '#/$defs/a' in this document"},
      {R"({"$ref": "http://x"})", "schema #: $ref: nothing at 'http://x' in this document"},
      {R"({"allOf": [{}, {}]})", "schema #: 'allOf' of more than one schema is not supported"},
      {R"({"anyOf": [{}], "type": "object"})", "schema #: 'type' beside 'anyOf' is not supported"},
      {R"({"anyOf": []})", "schema #: anyOf: expected a list"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
       "schema #: oneOf: 0 and 1 may both fit; use anyOf, or a type or constant member that tells them "
       "apart"},
      {R"({"enum": []})", "schema #: enum: expected a list of values"},
      {R"({"enum": [1], "minimum": 2})", "schema #: 'minimum' beside 'enum' is not supported"},
      {R"({"enum": [1], "type": "string"})", "schema: no finite value fits it"},
      {R"({"type": "string", "minLength": -1})", "schema #: minLength: expected a count"},
      {R"({"type": "string", "maxLength": 1000000})", "schema #: maxLength above 20000"},
      {R"({"pattern": "("})", "schema #: pattern: expected ')' at 1"},
      {R"x({"pattern": "(?=a)"})x", "schema #: pattern: only (?: is read of groups with (? at 2"},
      {R"({"pattern": "a\\b"})", "schema #: pattern: '\\b' is not read at 2"},
      {R"({"pattern": "a", "maxLength": 3})", "schema #: lengths beside 'pattern' are not supported"},
      {R"({"format": "hostname"})", "schema #: format 'hostname' is not supported"},
      {R"({"items": [{}]})", "schema #: 'items' as a list is not supported; use 'prefixItems'"},
      {R"({"minimum": 5, "maximum": 3})", "schema: no finite value fits it"},
      {R"({"minimum": 1e30})", "schema #: 1e+30: more than 18 digits before the point"},
      {R"({"$defs": {"a": {"required": ["b"], "properties": {"b": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"})",
       "schema: no finite value fits it"},
      {R"(false)", "schema: no finite value fits it"},
      {R"(5)", "schema #: number, expected an object"},
      {R"({"type": "array", "minItems": 20000, "items": {"type": "array", "minItems": 20000}})", ""},
  };
  for (const auto& [schema, expected] : rows) EXPECT_EQ(message(schema), expected) << schema;
}

TEST(Schema, TellsSchemasApart) {
  const auto disjoint = [](const char* a, const char* b) {
    const Json document = {{"$defs", {{"i", {{"type", "integer"}}}}}};
    const bool forward = are_disjoint(document, Json::parse(a), Json::parse(b));
    EXPECT_EQ(forward, are_disjoint(document, Json::parse(b), Json::parse(a)));
    return forward;
  };
  EXPECT_TRUE(disjoint(R"({"type": "string"})", R"({"$ref": "#/$defs/i"})"));
  EXPECT_TRUE(disjoint(R"({"const": "a"})", R"({"enum": ["b", "c"]})"));
  EXPECT_FALSE(disjoint(R"({"const": 1})", R"({"type": "integer"})"));
  EXPECT_TRUE(disjoint(R"({"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]})",
                       R"({"type": "object", "properties": {"k": {"const": "b"}}})"));
  EXPECT_FALSE(disjoint(R"({"type": "object", "properties": {"k": {"const": "a"}}})",
                        R"({"type": "object", "properties": {"k": {"const": "b"}}})"));
  EXPECT_TRUE(disjoint(R"({"type": "object", "properties": {"k": {}}, "required": ["k"]})",
                       R"({"type": "object", "additionalProperties": false})"));
  EXPECT_FALSE(disjoint(R"({})", R"({"type": "string"})"));
}

TEST(Schema, RandomTextsOfRandomSchemasAreValid) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    const Json schema = random_schema(random, 3);
    Result<Grammar> grammar = compile_schema(schema);
    if (!grammar) {
      ASSERT_EQ(grammar.error().message, "schema: no finite value fits it") << seed << " " << schema;
      continue;
    }
    Automaton automaton(std::make_shared<const Grammar>(std::move(*grammar)));
    for (int i = 0; i < 5; ++i) {
      const std::string text = random_text(automaton, random, 300);
      const Json value = Json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << "seed " << seed << " " << schema << ": " << text;
      ASSERT_EQ(find_violation(schema, value), "") << "seed " << seed << " " << schema << ": " << text;
    }
  }
}

/// The same with another validator, where there is one.
TEST(Schema, RandomTextsAreValidElsewhereToo) {
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") != 0)
    GTEST_SKIP() << "no python3 with jsonschema";
  const std::string file = ::testing::TempDir() + "forebay_schema_samples.jsonl";
  std::ofstream lines(file);
  int n = 0;
  for (uint64_t seed = 1000; seed < 1300; ++seed) {
    std::mt19937_64 random(seed);
    const Json schema = random_schema(random, 3);
    Result<Grammar> grammar = compile_schema(schema);
    if (!grammar) continue;
    Automaton automaton(std::make_shared<const Grammar>(std::move(*grammar)));
    for (int i = 0; i < 3; ++i, ++n) {
      const Json line = {{"schema", schema}, {"text", random_text(automaton, random, 300)}};
      lines << line.dump() << '\n';
    }
  }
  lines.close();
  ASSERT_GT(n, 500);
  const char* const check =
      "import json, sys, jsonschema\n"
      "for line in open(sys.argv[1], encoding='utf-8'):\n"
      "    one = json.loads(line)\n"
      "    try: jsonschema.Draft202012Validator(one['schema']).validate(json.loads(one['text']))\n"
      "    except Exception as error: sys.exit(line + repr(error)[:500])\n";
  EXPECT_EQ(std::system(fmt::format("python3 -c \"{}\" '{}'", check, file).c_str()), 0);
  std::remove(file.c_str());
}

/// Small schemas that ask for much work.
TEST(Schema, HostileSchemasTakeNoTime) {
  Json member = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
  for (int i = 0; i < 12; ++i) {
    member["properties"]["p" + std::to_string(i)] = {{"$ref", "#/$defs/m"}};
    member["required"].push_back("p" + std::to_string(i));
  }
  Json other = member;
  other["title"] = "other";
  EXPECT_FALSE(compile_schema({{"oneOf", {{{"$ref", "#/$defs/m"}}, {{"$ref", "#/$defs/o"}}}},
                               {"$defs", {{"m", member}, {"o", other}}}}));

  Json many = {{"anyOf", Json::array({{{"type", "null"}}})}};
  for (int i = 0; i < 50; ++i) many["anyOf"].push_back({{"type", "array"}, {"items", {{"$ref", "#"}}}});
  Result<Grammar> grammar = compile_schema(many);
  ASSERT_TRUE(grammar);
  Automaton automaton(std::make_shared<const Grammar>(std::move(*grammar)));
  const std::string deep(20, '[');
  EXPECT_TRUE(reads(automaton, deep + "null" + std::string(20, ']')));
}

TEST(Schema, ManyStatesAreForgotten) {
  const auto grammar = grammar_of(R"({"type": "string", "maxLength": 20000})");
  Automaton automaton(grammar);
  StateId state = automaton.next(automaton.start(), '"');
  bool ever = false;
  for (int i = 0; i < 20000; ++i) {
    state = automaton.next(state, 'a');
    bool trimmed = false;
    state = automaton.trim(state, trimmed);
    ever |= trimmed;
    ASSERT_NE(state, Automaton::kDead) << i;
  }
  EXPECT_TRUE(ever);
  EXPECT_EQ(automaton.next(state, 'a'), Automaton::kDead);
  EXPECT_TRUE(automaton.accepting(automaton.next(state, '"')));
}

}  // namespace
}  // namespace forebay
