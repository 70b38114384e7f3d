#include "server/anthropic.h"
#include "server/server_impl.h"

namespace forebay {
namespace {

using Request = httplib::Request;
using Response = httplib::Response;

Result<void> answer_messages(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  ChatRequest request = TRY(parse_anthropic_request(body, s.engine.info()));
  request.options.client = client_of(http, request.options);
  std::unique_ptr<AnswerRun> run = TRY(AnswerRun::chat(s.context(), request));
  send_answers(http, response, std::move(run), make_anthropic_reply(s.model_name), request.options.stream);
  return {};
}

Result<void> count_tokens(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  const ChatRequest request = TRY(parse_anthropic_request(body, s.engine.info(), /*counting=*/true));
  const Prompt prompt = TRY(s.prompts.chat(request));
  respond(response, 200, {{"input_tokens", prompt.ids.size()}});
  return {};
}

}  // namespace

void Server::Impl::add_anthropic_routes() {
  const auto post = [this](const char* path, Result<void> (*answer)(Impl&, const Request&, Response&)) {
    http.Post(path, [this, answer](const Request& request, Response& response) {
      const Result<void> answered = answer(*this, request, response);
      if (!answered) respond_error(request, response, to_api_error(answered.error()));
    });
  };
  post("/v1/messages", answer_messages);
  post("/v1/messages/count_tokens", count_tokens);
}

}  // namespace forebay
