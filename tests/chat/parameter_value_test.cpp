#include "chat/parameter_value.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

AllowedTypes types_of(const char* schema) {
  Json parameters = {{"properties", {{"p", Json::parse(schema)}}}, {"$defs", {{"n", {{"type", "number"}}}}}};
  parameters["$defs"]["loop"] = {{"$ref", "#/$defs/loop"}};
  const Json tool = {{"name", "f"}, {"parameters", parameters}};
  return ToolSchemas::parse(Json::array({tool})).value().types_of("f", "p");
}

TEST(ParameterValue, FollowsTheSchema) {
  struct Row {
    const char* schema;
    const char* text;
    const char* json;
    bool fits = true;
  };
  const Row rows[] = {
      {R"({"type": "string"})", " a ", R"(" a ")"},
      {R"({"type": "integer"})", " 7\n", "7"},
      {R"({"type": "integer"})", "5.0", "5.0"},
      {R"({"type": "integer"})", "5.5", R"("5.5")", false},
      {R"({"type": "integer"})", "12345678901234567890123", "12345678901234567890123"},
      {R"({"type": "number"})", "-1.5e3", "-1.5e3"},
      {R"({"type": "number"})", "Infinity", R"("Infinity")", false},
      {R"({"type": "number"})", "01", R"("01")", false},
      {R"({"type": "boolean"})", "True", "true"},
      {R"({"type": "boolean"})", "yes", R"("yes")", false},
      {R"({"type": "object"})", "{\"a\": [1]}", "{\"a\": [1]}"},
      {R"({"type": "object"})", "{a: 1}", R"("{a: 1}")", false},
      {R"({"type": ["number", "null"]})", "None", "null"},
      {R"({"type": ["string", "number"]})", "5", R"("5")"},
      {R"({"enum": ["a", "b"]})", "a", R"("a")"},
      {R"({"enum": [1, 2]})", "2", "2"},
      {R"({"const": true})", "true", "true"},
      {R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})", "null", "null"},
      {R"({"$ref": "#/$defs/n"})", "2", "2"},
      {R"({"$ref": "#/$defs/loop"})", "2", "2"},
      {R"({"$ref": "#/$defs/absent"})", "x", R"("x")"},
      {R"({})", "\"x\"", R"("\"x\"")"},
      {R"({})", "", R"("")"},
      {R"(true)", "true", "true"},
  };
  for (const Row& row : rows) {
    const ParameterValue value = parameter_value(row.text, types_of(row.schema));
    EXPECT_EQ(value.json, row.json) << row.schema << " " << row.text;
    EXPECT_EQ(value.fits, row.fits) << row.schema << " " << row.text;
  }
}

TEST(ToolSchemas, ReadsBothKindsOfList) {
  const auto tools = ToolSchemas::parse(Json::parse(
      R"([{"type": "function", "function": {"name": "a", "parameters": {"properties": {"x": {"type": "integer"}}}}},
          {"name": "b", "input_schema": {"properties": {"y": {"type": "string"}}}}])"));
  ASSERT_TRUE(tools);
  EXPECT_EQ(tools->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(tools->types_of("a", "x").integer);
  EXPECT_TRUE(tools->types_of("b", "y").string);
  EXPECT_TRUE(tools->types_of("b", "z").any);
  EXPECT_TRUE(ToolSchemas::parse(nullptr)->empty());
}

TEST(ToolSchemas, NamesWhatIsWrong) {
  const auto message = [](const char* json) {
    const auto tools = ToolSchemas::parse(Json::parse(json));
    return tools ? "" : tools.error().message;
  };
  EXPECT_EQ(message("{}"), "tools: object, expected a list");
  EXPECT_EQ(message("[1]"), "tools[0]: number, expected an object");
  EXPECT_EQ(message(R"([{"function": 1}])"), "tools[0].function: number, expected an object");
  EXPECT_EQ(message(R"([{"function": {}}])"), "tools[0].function.name: expected a text");
  EXPECT_EQ(message(R"([{"name": "a"}, {"name": "a"}])"), "tools[1].name: 'a' is there twice");
  EXPECT_EQ(message(R"([{"name": "a", "parameters": 1}])"),
            "tools[0].parameters: number, expected an object");
  EXPECT_EQ(message(R"([{"name": "a>"}])"), "tools[0].name: 'a>' has a character that no call can carry");
}

}  // namespace
}  // namespace forebay
