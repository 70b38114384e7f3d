#include "core/log.h"
#include "server/anthropic.h"

namespace forebay {
namespace {

Json usage_json(const Usage& usage) {
  return {{"input_tokens", usage.n_prompt - usage.n_cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.n_cached},
          {"output_tokens", usage.n_completion}};
}

std::string_view stop_reason(const Choice& choice) {
  switch (choice.end.report.reason) {
    case FinishReason::kLength:
    case FinishReason::kContextFull:
    case FinishReason::kRepetition:
    case FinishReason::kCancelled:
      return "max_tokens";
    case FinishReason::kStopString:
      return "stop_sequence";
    case FinishReason::kStopToken:
      break;
  }
  return choice.calls_tools() ? "tool_use" : "end_turn";
}

Json stop_sequence(const Choice& choice) {
  return choice.end.stop.empty() ? Json() : Json(choice.end.stop);
}

/// The protocol wants an object; what the model wrote instead is shown, not dropped.
Json input_of(const ParsedCall& call) {
  const Result<Json> input = parse_object(call.arguments.empty() ? "{}" : call.arguments);
  if (input) return *input;
  log::warn("call of {}: arguments that are no JSON object: {}", call.name, call.arguments);
  return {{"malformed_arguments", call.arguments}};
}

class AnthropicReply : public Reply {
 public:
  explicit AnthropicReply(std::string model) : model_(std::move(model)) {}

  std::string begin(const Usage& so_far) override {
    Json message = frame();
    message["content"] = Json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = usage_json(so_far);
    return sse("message_start", {{"type", "message_start"}, {"message", std::move(message)}}) +
           sse("ping", {{"type", "ping"}});
  }

  std::string deltas(int, std::span<const OutputEvent> events, std::span<const AnswerToken>) override {
    std::string out;
    for (const OutputEvent& event : events) {
      switch (event.kind) {
        case OutputEvent::Kind::kReasoning:
          out += open("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
          out += delta({{"type", "thinking_delta"}, {"thinking", event.text}});
          break;
        case OutputEvent::Kind::kContent:
          out += open("text", {{"type", "text"}, {"text", ""}});
          out += delta({{"type", "text_delta"}, {"text", event.text}});
          break;
        case OutputEvent::Kind::kCallBegin:
          out += stop_block();
          out +=
              open("tool_use",
                   {{"type", "tool_use"}, {"id", event.id}, {"name", event.name}, {"input", Json::object()}});
          break;
        case OutputEvent::Kind::kArguments:
          out += delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
          break;
        case OutputEvent::Kind::kCallEnd:
          out += stop_block();
          break;
      }
    }
    return out;
  }

  std::string end(int, const Choice& choice) override {
    last_ = {{"stop_reason", stop_reason(choice)}, {"stop_sequence", stop_sequence(choice)}};
    return stop_block();
  }

  std::string close(const Usage& usage) override {
    return sse("message_delta", {{"type", "message_delta"}, {"delta", last_}, {"usage", usage_json(usage)}}) +
           sse("message_stop", {{"type", "message_stop"}});
  }

  std::string failure(const ApiError& error) override { return sse("error", anthropic_error(error)); }

  Json whole(std::span<const Choice> choices, const Usage& usage) override {
    const Choice& choice = choices[0];
    Json content = Json::array();
    if (!choice.answer.reasoning.empty())
      content.push_back({{"type", "thinking"}, {"thinking", choice.answer.reasoning}, {"signature", ""}});
    if (!choice.answer.content.empty())
      content.push_back({{"type", "text"}, {"text", choice.answer.content}});
    for (const ParsedCall& call : choice.answer.calls)
      content.push_back(
          {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call)}});
    Json out = frame();
    out["content"] = std::move(content);
    out["stop_reason"] = stop_reason(choice);
    out["stop_sequence"] = stop_sequence(choice);
    out["usage"] = usage_json(usage);
    return out;
  }

 private:
  Json frame() const { return {{"id", id_}, {"type", "message"}, {"role", "assistant"}, {"model", model_}}; }
  std::string delta(Json json) const {
    return sse("content_block_delta",
               {{"type", "content_block_delta"}, {"index", block_}, {"delta", std::move(json)}});
  }
  /// Goes on with the open block where it is of this kind.
  std::string open(const std::string& kind, Json block) {
    if (kind_ == kind) return {};
    std::string out = stop_block();
    kind_ = kind;
    ++block_;
    return out +
           sse("content_block_start",
               {{"type", "content_block_start"}, {"index", block_}, {"content_block", std::move(block)}});
  }
  std::string stop_block() {
    if (kind_.empty()) return {};
    std::string out;
    if (kind_ == "thinking") out = delta({{"type", "signature_delta"}, {"signature", ""}});
    kind_.clear();
    return out + sse("content_block_stop", {{"type", "content_block_stop"}, {"index", block_}});
  }

  const std::string model_;
  const std::string id_ = random_id("msg_");
  std::string kind_;  // of the open block
  int block_ = -1;
  Json last_;
};

}  // namespace

std::unique_ptr<Reply> make_anthropic_reply(std::string model) {
  return std::make_unique<AnthropicReply>(std::move(model));
}

Json anthropic_error(const ApiError& error) {
  const char* type = error.status == 401   ? "authentication_error"
                     : error.status == 404 ? "not_found_error"
                     : error.status == 413 ? "request_too_large"
                     : error.status == 429 ? "rate_limit_error"
                     : error.status == 503 ? "overloaded_error"
                     : error.status < 500  ? "invalid_request_error"
                                           : "api_error";
  return {{"type", "error"}, {"error", {{"type", type}, {"message", error.message}}}};
}

}  // namespace forebay
