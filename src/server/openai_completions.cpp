#include "server/openai_completions.h"

#include <fmt/format.h>

#include "server/parameters.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

constexpr size_t kMostPrompts = 64;

class CompletionReply : public Reply {
 public:
  CompletionReply(std::string model, const AnswerOptions& options, const Tokenizer& tokenizer,
                  std::vector<std::string> echoes)
      : model_(std::move(model)), options_(options), tokenizer_(tokenizer), echoes_(std::move(echoes)) {}

  std::string begin(const Usage&) override {
    std::string out;
    for (int i = 0; i < static_cast<int>(echoes_.size()) * options_.n; ++i)
      if (!echo_of(i).empty()) out += chunk(i, echo_of(i), nullptr, nullptr);
    return out;
  }
  std::string deltas(int index, std::span<const OutputEvent> events,
                     std::span<const AnswerToken> tokens) override {
    std::string text;
    for (const OutputEvent& event : events) text += event.text;
    Json log_probs = options_.log_probs && !tokens.empty() ? log_probs_json(tokens) : Json();
    if (text.empty() && log_probs.is_null()) return {};
    return chunk(index, text, nullptr, std::move(log_probs));
  }
  std::string end(int index, const Choice& choice) override {
    return chunk(index, "", Json(openai_finish_reason(choice)), nullptr);
  }
  std::string close(const Usage& usage) override { return openai_stream_end(frame(), options_, usage); }
  std::string failure(const ApiError& error) override { return sse("", openai_error(error)); }

  Json whole(std::span<const Choice> choices, const Usage& usage) override {
    Json out = frame();
    out["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i)
      out["choices"].push_back({{"index", i},
                                {"text", echo_of(static_cast<int>(i)) + choices[i].answer.content},
                                {"logprobs", options_.log_probs ? log_probs_json(choices[i].tokens) : Json()},
                                {"finish_reason", openai_finish_reason(choices[i])}});
    out["usage"] = openai_usage(usage);
    return out;
  }

 private:
  const std::string& echo_of(int index) const { return echoes_[index / options_.n]; }
  Json frame() const {
    return {{"id", id_}, {"object", "text_completion"}, {"created", created_}, {"model", model_}};
  }
  std::string chunk(int index, const std::string& text, Json finish_reason, Json log_probs) const {
    Json out = frame();
    out["choices"] = Json::array({{{"index", index},
                                   {"text", text},
                                   {"logprobs", std::move(log_probs)},
                                   {"finish_reason", std::move(finish_reason)}}});
    return sse("", out);
  }
  Json log_probs_json(std::span<const AnswerToken> tokens) const {
    const auto text = [&](int32_t id) { return std::string(tokenizer_.token_bytes(id, /*specials=*/true)); };
    Json out = {
        {"tokens", Json::array()}, {"token_logprobs", Json::array()}, {"top_logprobs", Json::array()}};
    for (const AnswerToken& token : tokens) {
      if (token.id < 0) continue;
      out["tokens"].push_back(text(token.id));
      out["token_logprobs"].push_back(token.log_prob);
      Json top = Json::object();
      for (const auto& [id, log_prob] : token.top) top[text(id)] = log_prob;
      out["top_logprobs"].push_back(std::move(top));
    }
    return out;
  }

  const std::string model_;
  const AnswerOptions options_;
  const Tokenizer& tokenizer_;
  const std::vector<std::string> echoes_;
  const std::string id_ = random_id("cmpl-");
  const int64_t created_ = unix_now();
};

Error wrong_prompt(const Fields& fields) {
  return fields.wrong("prompt", "a string, a list of token ids, or a list of either");
}

Result<void> check_ids(const Fields& fields, const Json& ids, int n_vocab) {
  for (const Json& id : ids) {
    if (!id.is_number_integer()) return wrong_prompt(fields);
    if (id < 0 || id >= n_vocab)
      return fields.refuse("prompt", fmt::format("token {}, expected 0 to {}", describe(id), n_vocab - 1));
  }
  return {};
}

}  // namespace

Result<CompletionRequest> parse_completion_request(const Json& body, const ModelInfo& model) {
  const Fields fields(body);
  CompletionRequest request;
  request.options = TRY(parse_answer_options(fields, Protocol::kCompletions, model));
  if (request.options.generate.max_tokens < 0) request.options.generate.max_tokens = 16;
  request.echo = TRY(fields.boolean("echo")).value_or(false);
  if (fields.has("suffix")) return fields.refuse("suffix", "is not supported");
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) return wrong_prompt(fields);
  const bool one =
      prompt->is_string() || (prompt->is_array() && !prompt->empty() && (*prompt)[0].is_number());
  if (one) {
    request.prompts.push_back(*prompt);
  } else {
    if (!prompt->is_array() || prompt->empty()) return wrong_prompt(fields);
    for (const Json& p : *prompt) request.prompts.push_back(p);
  }
  if (request.prompts.size() > kMostPrompts)
    return fields.refuse(
        "prompt", fmt::format("{} prompts, expected at most {}", request.prompts.size(), kMostPrompts));
  for (const Json& p : request.prompts) {
    if (p.is_string()) continue;
    if (!p.is_array() || p.empty()) return wrong_prompt(fields);
    TRY(check_ids(fields, p, model.n_vocab));
  }
  return request;
}

std::unique_ptr<Reply> make_completion_reply(std::string model, const AnswerOptions& options,
                                             const Tokenizer& tokenizer, std::vector<std::string> echoes) {
  return std::make_unique<CompletionReply>(std::move(model), options, tokenizer, std::move(echoes));
}

}  // namespace forebay
