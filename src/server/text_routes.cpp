#include <fmt/format.h>

#include "server/messages.h"
#include "server/openai_chat.h"
#include "server/server_impl.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

using Request = httplib::Request;
using Response = httplib::Response;

Result<void> tokenize(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  const Fields fields(body);
  const std::string text = TRY(fields.required_string("content"));
  const bool special = TRY(fields.boolean("parse_special")).value_or(true);
  const bool pieces = TRY(fields.boolean("with_pieces")).value_or(false);
  Json tokens = Json::array();
  for (const int32_t id : TRY(s.engine.tokenize(text, special))) {
    if (pieces)
      tokens.push_back({{"id", id}, {"piece", std::string(s.engine.tokenizer()->token_bytes(id, true))}});
    else
      tokens.push_back(id);
  }
  respond(response, 200, {{"tokens", std::move(tokens)}});
  return {};
}

Result<void> detokenize(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  const Fields fields(body);
  const Json* tokens = TRY(fields.required_list("tokens"));
  std::vector<int32_t> ids;
  for (const Json& token : *tokens) {
    if (!token.is_number_integer() || token < 0 || token >= s.engine.info().n_vocab)
      return fields.refuse("tokens", fmt::format("{}, expected token ids from 0 to {}", describe(token),
                                                 s.engine.info().n_vocab - 1));
    ids.push_back(token.get<int32_t>());
  }
  const std::string text = TRY(s.engine.detokenize(ids));
  respond(response, 200, {{"content", text}});
  return {};
}

Result<void> apply_template(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  const ChatRequest request = TRY(parse_chat_request(body, s.engine.info()));
  const std::string text = TRY(s.prompts.render(request));
  respond(response, 200, {{"prompt", text}});
  return {};
}

}  // namespace

void Server::Impl::add_text_routes() {
  const auto post = [this](const char* path, Result<void> (*answer)(Impl&, const Request&, Response&)) {
    http.Post(path, [this, answer](const Request& request, Response& response) {
      const Result<void> answered = answer(*this, request, response);
      if (!answered) respond_error(request, response, to_api_error(answered.error()));
    });
  };
  post("/tokenize", tokenize);
  post("/detokenize", detokenize);
  post("/apply-template", apply_template);
}

}  // namespace forebay
