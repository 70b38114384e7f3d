#include "server/messages.h"
#include "server/openai_chat.h"
#include "server/openai_responses.h"

namespace forebay {
namespace {

class ResponsesReply : public Reply {
 public:
  ResponsesReply(std::string model, ResponsesRequest request, ResponseStore& store)
      : model_(std::move(model)), request_(std::move(request)), store_(store) {}

  std::string begin(const Usage&) override {
    std::string out = event("response.created", {{"response", frame("in_progress")}});
    out += event("response.in_progress", {{"response", frame("in_progress")}});
    return out;
  }

  std::string deltas(int, std::span<const OutputEvent> events, std::span<const AnswerToken>) override {
    std::string out;
    for (const OutputEvent& e : events) {
      switch (e.kind) {
        case OutputEvent::Kind::kReasoning:
          out += open("reasoning", random_id("rs_"), {}, {});
          out += part_event("response.reasoning_text.delta", {{"delta", e.text}});
          text_ += e.text;
          break;
        case OutputEvent::Kind::kContent:
          out += open("message", random_id("msg_"), {}, {});
          out += part_event("response.output_text.delta", {{"delta", e.text}, {"logprobs", Json::array()}});
          text_ += e.text;
          break;
        case OutputEvent::Kind::kCallBegin:
          out += finish_item();
          out += open("function_call", random_id("fc_"), e.id, e.name);
          break;
        case OutputEvent::Kind::kArguments:
          out += item_event("response.function_call_arguments.delta", {{"delta", e.text}});
          text_ += e.text;
          break;
        case OutputEvent::Kind::kCallEnd:
          out += finish_item();
          break;
      }
    }
    return out;
  }

  std::string end(int, const Choice& choice) override {
    std::string out = finish_item();
    remember(choice);
    status_ = status_of(choice);
    return out;
  }

  std::string close(const Usage& usage) override {
    Json response = frame(status_);
    response["output"] = items_;
    finish_response(response, usage);
    const char* name = status_ == "completed" ? "response.completed" : "response.incomplete";
    return event(name, {{"response", std::move(response)}});
  }

  std::string failure(const ApiError& error) override {
    Json response = frame("failed");
    response["error"] = {{"code", error.code.empty() ? "server_error" : error.code},
                         {"message", error.message}};
    return event("response.failed", {{"response", std::move(response)}});
  }

  Json whole(std::span<const Choice> choices, const Usage& usage) override {
    const Choice& choice = choices[0];
    if (!choice.answer.reasoning.empty())
      add_item("reasoning", random_id("rs_"), choice.answer.reasoning, {}, {});
    if (!choice.answer.content.empty() || choice.answer.calls.empty())
      add_item("message", random_id("msg_"), choice.answer.content, {}, {});
    for (const ParsedCall& call : choice.answer.calls)
      add_item("function_call", random_id("fc_"), call.arguments, call.id, call.name);
    remember(choice);
    status_ = status_of(choice);
    Json response = frame(status_);
    response["output"] = items_;
    finish_response(response, usage);
    return response;
  }

 private:
  static std::string status_of(const Choice& choice) {
    return openai_finish_reason(choice) == "length" ? "incomplete" : "completed";
  }

  Json frame(const std::string& status) const {
    Json out = {{"id", id_},        {"object", "response"},   {"created_at", created_},
                {"status", status}, {"error", nullptr},       {"incomplete_details", nullptr},
                {"model", model_},  {"output", Json::array()}};
    for (const auto& [key, value] : request_.echo.items()) out[key] = value;
    out["store"] = request_.store;
    out["usage"] = nullptr;
    if (status == "incomplete") out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    return out;
  }

  static void finish_response(Json& response, const Usage& usage) {
    response["usage"] = {{"input_tokens", usage.n_prompt},
                         {"input_tokens_details", {{"cached_tokens", usage.n_cached}}},
                         {"output_tokens", usage.n_completion},
                         {"output_tokens_details", {{"reasoning_tokens", usage.n_reasoning}}},
                         {"total_tokens", usage.n_prompt + usage.n_completion}};
  }

  Json item(const std::string& kind, const std::string& id, const std::string& text,
            const std::string& call_id, const std::string& name, const char* status) const {
    Json out = {{"id", id}, {"type", kind}, {"status", status}};
    if (kind == "function_call") {
      out["call_id"] = call_id;
      out["name"] = name;
      out["arguments"] = text;
    } else if (kind == "reasoning") {
      out["summary"] = Json::array();
      out["content"] = Json::array({{{"type", "reasoning_text"}, {"text", text}}});
    } else {
      out["role"] = "assistant";
      out["content"] = Json::array({text_part(text)});
    }
    return out;
  }
  static Json text_part(const std::string& text) {
    return {
        {"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
  }
  void add_item(const std::string& kind, const std::string& id, const std::string& text,
                const std::string& call_id, const std::string& name) {
    items_.push_back(item(kind, id, text, call_id, name, "completed"));
  }

  std::string event(const std::string& name, Json data) {
    Json out = {{"type", name}, {"sequence_number", sequence_++}};
    for (auto& [key, value] : data.items()) out[key] = std::move(value);
    return sse(name, out);
  }
  std::string item_event(const std::string& name, Json data) {
    data["item_id"] = item_id_;
    data["output_index"] = items_.size();
    return event(name, std::move(data));
  }
  std::string part_event(const std::string& name, Json data) {
    data["content_index"] = 0;
    return item_event(name, std::move(data));
  }

  /// Goes on with the open item where it is of this kind.
  std::string open(const std::string& kind, const std::string& id, const std::string& call_id,
                   const std::string& name) {
    if (kind_ == kind) return {};
    std::string out = finish_item();
    kind_ = kind;
    item_id_ = id;
    call_id_ = call_id;
    name_ = name;
    Json added = item(kind, id, "", call_id, name, "in_progress");
    if (kind != "function_call") added["content"] = Json::array();
    out += event("response.output_item.added", {{"output_index", items_.size()}, {"item", std::move(added)}});
    if (kind == "message") out += part_event("response.content_part.added", {{"part", text_part("")}});
    return out;
  }

  std::string finish_item() {
    if (kind_.empty()) return {};
    std::string out;
    if (kind_ == "message") {
      out += part_event("response.output_text.done", {{"text", text_}, {"logprobs", Json::array()}});
      out += part_event("response.content_part.done", {{"part", text_part(text_)}});
    } else if (kind_ == "reasoning") {
      out += part_event("response.reasoning_text.done", {{"text", text_}});
    } else {
      out += item_event("response.function_call_arguments.done", {{"arguments", text_}, {"name", name_}});
    }
    Json done = item(kind_, item_id_, text_, call_id_, name_, "completed");
    out += event("response.output_item.done", {{"output_index", items_.size()}, {"item", done}});
    items_.push_back(std::move(done));
    kind_.clear();
    text_.clear();
    return out;
  }

  /// What a later request goes on from.
  void remember(const Choice& choice) {
    if (!request_.store) return;
    Json messages = request_.chat.messages;
    messages.erase(messages.begin(), messages.begin() + static_cast<int64_t>(request_.n_instructions));
    Json calls = Json::array();
    for (const ParsedCall& call : choice.answer.calls)
      calls.push_back(tool_call(call.id, call.name, call.arguments));
    messages.push_back(assistant_message(choice.answer.content, choice.answer.reasoning, std::move(calls)));
    store_.put(id_, std::move(messages));
  }

  const std::string model_;
  const ResponsesRequest request_;
  ResponseStore& store_;
  const std::string id_ = random_id("resp_");
  const int64_t created_ = unix_now();
  int64_t sequence_ = 0;
  Json items_ = Json::array();  // complete ones
  std::string status_ = "completed";
  // The open item.
  std::string kind_, item_id_, call_id_, name_, text_;
};

}  // namespace

std::unique_ptr<Reply> make_responses_reply(std::string model, ResponsesRequest request,
                                            ResponseStore& store) {
  return std::make_unique<ResponsesReply>(std::move(model), std::move(request), store);
}

}  // namespace forebay
