#include "server/openai_chat.h"

#include "server/messages.h"
#include "server/parameters.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

Json token_json(const Tokenizer& tokenizer, int32_t id, double log_prob) {
  const std::string_view bytes = tokenizer.token_bytes(id, /*specials=*/true);
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", std::string(bytes)}, {"logprob", log_prob}, {"bytes", std::move(list)}};
}

class ChatReply : public Reply {
 public:
  ChatReply(std::string model, const AnswerOptions& options, const Tokenizer& tokenizer)
      : model_(std::move(model)), options_(options), tokenizer_(tokenizer) {}

  std::string begin(const Usage&) override {
    std::string out;
    for (int i = 0; i < options_.n; ++i)
      out += chunk(i, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
    return out;
  }

  std::string deltas(int index, std::span<const OutputEvent> events,
                     std::span<const AnswerToken> tokens) override {
    std::string out;
    Json log_probs = options_.log_probs && !tokens.empty() ? log_probs_json(tokens) : Json();
    for (const OutputEvent& event : events) {
      Json delta = delta_of(event);
      if (delta.is_null()) continue;
      out += chunk(index, std::move(delta), nullptr, std::exchange(log_probs, nullptr));
    }
    if (!log_probs.is_null()) out += chunk(index, {{"content", ""}}, nullptr, std::move(log_probs));
    return out;
  }

  std::string end(int index, const Choice& choice) override {
    Json last = chunk_json(index, Json::object(), Json(openai_finish_reason(choice)), nullptr);
    add_finish_detail(last["choices"][0], choice);
    return sse("", last);
  }

  std::string close(const Usage& usage) override {
    return openai_stream_end(frame("chat.completion.chunk"), options_, usage);
  }
  std::string failure(const ApiError& error) override { return sse("", openai_error(error)); }

  Json whole(std::span<const Choice> choices, const Usage& usage) override {
    Json out = frame("chat.completion");
    out["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i) {
      const Choice& choice = choices[i];
      Json message = {{"role", "assistant"}, {"content", choice.answer.content}};
      if (choice.answer.content.empty() && !choice.answer.calls.empty()) message["content"] = nullptr;
      if (!choice.answer.reasoning.empty()) message["reasoning_content"] = choice.answer.reasoning;
      for (const ParsedCall& call : choice.answer.calls)
        message["tool_calls"].push_back({{"id", call.id},
                                         {"type", "function"},
                                         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      out["choices"].push_back({{"index", i},
                                {"message", std::move(message)},
                                {"logprobs", options_.log_probs ? log_probs_json(choice.tokens) : Json()},
                                {"finish_reason", openai_finish_reason(choice)}});
      add_finish_detail(out["choices"].back(), choice);
    }
    out["usage"] = openai_usage(usage);
    return out;
  }

 private:
  Json frame(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
  }

  std::string chunk(int index, Json delta, Json finish_reason, Json log_probs) const {
    return sse("", chunk_json(index, std::move(delta), std::move(finish_reason), std::move(log_probs)));
  }

  Json chunk_json(int index, Json delta, Json finish_reason, Json log_probs) const {
    Json out = frame("chat.completion.chunk");
    out["choices"] = Json::array({{{"index", index},
                                   {"delta", std::move(delta)},
                                   {"logprobs", std::move(log_probs)},
                                   {"finish_reason", std::move(finish_reason)}}});
    if (options_.include_usage) out["usage"] = nullptr;
    return out;
  }

  static Json delta_of(const OutputEvent& event) {
    switch (event.kind) {
      case OutputEvent::Kind::kReasoning:
        return {{"reasoning_content", event.text}};
      case OutputEvent::Kind::kContent:
        return {{"content", event.text}};
      case OutputEvent::Kind::kCallBegin:
        return {{"tool_calls", Json::array({{{"index", event.call},
                                             {"id", event.id},
                                             {"type", "function"},
                                             {"function", {{"name", event.name}, {"arguments", ""}}}}})}};
      case OutputEvent::Kind::kArguments:
        return {{"tool_calls",
                 Json::array({{{"index", event.call}, {"function", {{"arguments", event.text}}}}})}};
      case OutputEvent::Kind::kCallEnd:
        break;
    }
    return nullptr;
  }

  /// Of every token that was sampled, reasoning and tags included.
  Json log_probs_json(std::span<const AnswerToken> tokens) const {
    Json list = Json::array();
    for (const AnswerToken& token : tokens) {
      if (token.id < 0) continue;
      Json one = token_json(tokenizer_, token.id, token.log_prob);
      one["top_logprobs"] = Json::array();
      for (const auto& [id, log_prob] : token.top)
        one["top_logprobs"].push_back(token_json(tokenizer_, id, log_prob));
      list.push_back(std::move(one));
    }
    return {{"content", std::move(list)}, {"refusal", nullptr}};
  }

  const std::string model_;
  const AnswerOptions options_;
  const Tokenizer& tokenizer_;
  const std::string id_ = random_id("chatcmpl-");
  const int64_t created_ = unix_now();
};

}  // namespace

Result<ChatRequest> parse_chat_request(const Json& body, const ModelInfo& model) {
  const Fields fields(body);
  ChatRequest request;
  request.options = TRY(parse_answer_options(fields, Protocol::kChat, model));
  request.messages = TRY(parse_messages(fields));
  request.tools = TRY(parse_tools(fields));
  request.tool_choice = TRY(parse_tool_choice(fields, request.tools));
  request.parallel_calls = TRY(fields.boolean("parallel_tool_calls")).value_or(true);
  if (const Json* values = TRY(fields.object("chat_template_kwargs"))) request.template_values = *values;
  for (const char* name : {"messages", "tools", "add_generation_prompt"}) request.template_values.erase(name);
  return request;
}

std::unique_ptr<Reply> make_chat_reply(std::string model, const AnswerOptions& options,
                                       const Tokenizer& tokenizer) {
  return std::make_unique<ChatReply>(std::move(model), options, tokenizer);
}

Json openai_error(const ApiError& error) {
  const char* type = error.status == 401   ? "authentication_error"
                     : error.status == 429 ? "rate_limit_error"
                     : error.status < 500  ? "invalid_request_error"
                                           : "server_error";
  return {{"error",
           {{"message", error.message},
            {"type", type},
            {"param", error.param.empty() ? Json() : Json(error.param)},
            {"code", error.code.empty() ? Json() : Json(error.code)}}}};
}

Json openai_usage(const Usage& usage) {
  return {{"prompt_tokens", usage.n_prompt},
          {"completion_tokens", usage.n_completion},
          {"total_tokens", usage.n_prompt + usage.n_completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.n_cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.n_reasoning}}}};
}

std::string openai_stream_end(Json frame, const AnswerOptions& options, const Usage& usage) {
  std::string out;
  if (options.include_usage) {
    frame["choices"] = Json::array();
    frame["usage"] = openai_usage(usage);
    out = sse("", frame);
  }
  return out + "data: [DONE]\n\n";
}

void add_finish_detail(Json& choice_json, const Choice& choice) {
  const FinishReason reason = choice.end.report.reason;
  if (reason == FinishReason::kContextFull || reason == FinishReason::kRepetition)
    choice_json["finish_detail"] = name_of(reason);
}

std::string_view openai_finish_reason(const Choice& choice) {
  switch (choice.end.report.reason) {
    case FinishReason::kLength:
    case FinishReason::kContextFull:
    case FinishReason::kRepetition:
    case FinishReason::kCancelled:
      return "length";
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      break;
  }
  return choice.calls_tools() ? "tool_calls" : "stop";
}

}  // namespace forebay
