/// What the protocols have in common: a conversation as chat templates read it, and how it is answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "server/json_fields.h"

namespace forebay {

struct ToolChoice {
  enum class Kind { kAuto, kNone, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name;  // kNamed
};

/// How an answer is made, whatever the protocol calls it.
struct AnswerOptions {
  GenerateOptions generate;  // sampling over the model's own defaults; max_tokens
  std::vector<std::string> stop;
  int n = 1;
  bool log_probs = false;  // generate.top_log_probs alternatives with each token
  bool stream = false;
  bool include_usage = false;    // OpenAI: a last chunk with the usage
  std::string client;            // who takes turns with others; may be empty
  std::optional<bool> thinking;  // absent: as the template does
  int64_t thinking_budget = -1;  // tokens; -1: no limit
  std::optional<Json> schema;    // the content is JSON of this schema; {}: any object
};

struct ChatRequest {
  Json messages = Json::array();  // role, content (string), reasoning_content, tool_calls, tool_call_id
  Json tools;                     // OpenAI's list; null: none
  ToolChoice tool_choice;
  bool parallel_calls = true;
  Json template_values = Json::object();  // whatever else the template reads
  AnswerOptions options;
};

}  // namespace forebay
