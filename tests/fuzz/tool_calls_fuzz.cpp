// What a model writes, as an answer to a request with tools: nothing crashes, nothing is lost, and how the
// text is cut changes no event. An input's first byte chooses the style and where the cut is.
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "chat/output_parser.h"
#include "fuzz.h"

namespace {

using namespace forebay;

const ToolSchemas& tools() {
  static const ToolSchemas schemas = ToolSchemas::parse(nlohmann::ordered_json::parse(R"([
    {"name": "f", "parameters": {"properties": {"s": {"type": "string"}, "n": {"type": "number"}, "o": {}}}}])"))
                                         .value();
  return schemas;
}

struct Run {
  std::string log;
  ParsedAnswer answer;
};

Run run(std::string_view text, ToolStyle style, bool reasoning, size_t cut) {
  OutputParser parser({.tools = style}, tools(), reasoning, [] { return std::string("id"); });
  Run result;
  int last = -1;
  const auto add = [&](const OutputParser::Events& events) {
    for (const OutputEvent& event : events) {
      const int kind = static_cast<int>(event.kind) + 10 * event.call;
      if (kind != last || event.kind == OutputEvent::Kind::kCallEnd)
        result.log += "\1" + std::to_string(kind) + ":";
      result.log += event.name + event.text;
      last = kind;
    }
  };
  add(parser.feed(text.substr(0, cut)));
  add(parser.feed(text.substr(cut)));
  add(parser.finish());
  result.answer = parser.answer();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ToolStyle style = data[0] & 1 ? ToolStyle::kXml : ToolStyle::kJson;
  const bool reasoning = data[0] & 2;
  const Run whole = run(text, style, reasoning, 0);
  const Run cut = run(text, style, reasoning, text.size() * (data[0] >> 2) / 64);
  FUZZ_ASSERT(whole.log == cut.log);
  const ParsedAnswer& answer = whole.answer;
  FUZZ_ASSERT(answer.text == cut.answer.text);
  size_t n_call_bytes = 0;
  for (const ParsedCall& call : answer.calls) {
    n_call_bytes += call.bytes.size();
    if (call.state == CallState::kComplete) FUZZ_ASSERT(nlohmann::json::accept(call.arguments));
    if (!answer.call_in_reasoning) FUZZ_ASSERT(answer.text.find(call.bytes) != std::string::npos);
  }
  // Only tags, and white space beside them, are not in the output.
  FUZZ_ASSERT(answer.reasoning.size() + answer.content.size() + n_call_bytes <= text.size());
  FUZZ_ASSERT(text.find(answer.text) != std::string_view::npos);
  return 0;
}

FuzzSeeds fuzz_seeds() {
  const std::string xml =
      "a\n<tool_call>\n<function=f>\n<parameter=s>\nx</parameter>y\n</parameter>\n<parameter=n>\n1\n</"
      "parameter>\n"
      "</function>\n</tool_call>\n<tool_call><function=g></function></tool_call>b";
  const std::string json =
      R"(so</think>a<tool_call>{"name": "f", "arguments": {"s": "\"}", "o": [1, {}]}}</tool_call>b)";
  FuzzSeeds seeds;
  seeds.inputs = {"\x81" + xml, "\x83think\n" + xml, "\x43t\n" + xml + "</think>\n" + xml, "\x82" + json,
                  "\x42t\n<tool_call>{\"arguments\": \"{}\", \"name\": \"f\"}}</tool_call>\n"};
  seeds.tokens = {"<tool_call>",
                  "</tool_call>",
                  "<function=f>",
                  "<function=g>",
                  "</function>",
                  "<parameter=s>",
                  "<parameter=o>",
                  "</parameter>",
                  "<think>",
                  "</think>",
                  "\n",
                  "`",
                  "```\n",
                  "> ",
                  "{\"name\": ",
                  "\"f\"",
                  "\"arguments\": ",
                  "{",
                  "}",
                  "\\",
                  "\""};
  return seeds;
}
