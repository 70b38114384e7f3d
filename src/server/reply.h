/// How a protocol says an answer: as one JSON object, or as a stream of server-sent events.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output_parser.h"
#include "server/job.h"
#include "server/json_fields.h"

namespace forebay {

struct ApiError {
  int status = 500;
  std::string message;
  std::string param;  // the field at fault; empty: none
  std::string code;   // for programs: "context_length_exceeded", ...
};
/// An invalid argument's message begins with the field's name.
ApiError to_api_error(const Error& error);

struct Usage {
  int64_t n_prompt = 0;
  int64_t n_cached = 0;  // of the prompt, already in a state
  int64_t n_completion = 0;
  int64_t n_reasoning = 0;  // of the completion
};

/// One of a request's answers, as far as it got.
struct Choice {
  ParsedAnswer answer;
  std::vector<AnswerToken> tokens;  // all of them
  AnswerEnd end;
  bool ended = false;

  /// Whether the answer ends in calls that a client should run.
  bool calls_tools() const {
    return !answer.calls.empty() && answer.calls.back().state != CallState::kCutOff;
  }
};

/// "chatcmpl-" and 24 letters and digits.
std::string random_id(std::string_view prefix);
int64_t unix_now();
/// One server-sent event. Without a name, only data.
std::string sse(std::string_view event, const Json& data);

/// One request's. Confined.
class Reply {
 public:
  virtual ~Reply() = default;

  // A stream: begin, any number of deltas, end for each choice, close; or failure in place of what is left.
  virtual std::string begin(const Usage& so_far) = 0;
  virtual std::string deltas(int index, std::span<const OutputEvent> events,
                             std::span<const AnswerToken> tokens) = 0;
  virtual std::string end(int index, const Choice& choice) = 0;
  virtual std::string close(const Usage& usage) = 0;
  virtual std::string failure(const ApiError& error) = 0;

  /// Without a stream.
  virtual Json whole(std::span<const Choice> choices, const Usage& usage) = 0;
};

}  // namespace forebay
