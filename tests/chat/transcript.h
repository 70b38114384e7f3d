/// An answer's events as one line of text, for tests to compare.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "chat/output_parser.h"

namespace forebay {

inline ToolSchemas test_tools() {
  const auto tools = nlohmann::ordered_json::parse(R"([
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "metric": {"type": "boolean"},
      "tags": {"type": "array"}, "note": {"type": ["string", "null"]}}}}},
    {"type": "function", "function": {"name": "now"}}])");
  return ToolSchemas::parse(tools).value();
}

/// Deltas joined: reasoning in R[], content in C[], calls as "0:name(arguments)" and their state if not
/// complete.
class Transcript {
 public:
  void add(const OutputParser::Events& events) {
    using Kind = OutputEvent::Kind;
    for (const OutputEvent& event : events) {
      switch (event.kind) {
        case Kind::kReasoning:
          open('R', "R[");
          text_ += event.text;
          break;
        case Kind::kContent:
          open('C', "C[");
          text_ += event.text;
          break;
        case Kind::kCallBegin:
          open('B', "");
          text_ += std::to_string(event.call) + ":" + event.name + "(";
          break;
        case Kind::kArguments:
          text_ += event.text;
          break;
        case Kind::kCallEnd:
          text_ += ")";
          if (event.state != CallState::kComplete) text_ += std::string(name_of(event.state));
          kind_ = 0;
          bytes_.push_back(event.text);
          break;
      }
    }
  }
  std::string text() const { return kind_ == 'R' || kind_ == 'C' ? text_ + "]" : text_; }
  const std::vector<std::string>& bytes() const { return bytes_; }

 private:
  void open(char kind, std::string_view opening) {
    if (kind_ == kind && kind != 'B') return;
    if (kind_ == 'R' || kind_ == 'C') text_ += "]";
    kind_ = kind;
    text_ += opening;
  }

  char kind_ = 0;
  std::string text_;
  std::vector<std::string> bytes_;
};

/// The answer in pieces that end at `cuts`.
struct ParsedRun {
  std::string transcript;
  std::vector<std::string> bytes;
  ParsedAnswer answer;
};
inline ParsedRun parse_answer(std::string_view text, ToolStyle style, bool reasoning,
                              const ToolSchemas& tools, const std::vector<size_t>& cuts) {
  int n_ids = 0;
  OutputParser parser({.tools = style}, tools, reasoning, [&] { return "id" + std::to_string(n_ids++); });
  Transcript transcript;
  size_t start = 0;
  for (const size_t cut : cuts) {
    transcript.add(parser.feed(text.substr(start, cut - start)));
    start = cut;
  }
  transcript.add(parser.feed(text.substr(start)));
  transcript.add(parser.finish());
  return {transcript.text(), transcript.bytes(), parser.answer()};
}

}  // namespace forebay
