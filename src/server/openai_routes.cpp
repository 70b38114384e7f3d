#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_responses.h"
#include "server/server_impl.h"

namespace forebay {
namespace {

using Request = httplib::Request;
using Response = httplib::Response;

Result<void> answer_chat(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  ChatRequest request = TRY(parse_chat_request(body, s.engine.info()));
  request.options.client = client_of(http, request.options);
  std::unique_ptr<AnswerRun> run = TRY(AnswerRun::chat(s.context(), request));
  send_answers(http, response, std::move(run),
               make_chat_reply(s.model_name, request.options, *s.engine.tokenizer()), request.options.stream);
  return {};
}

Result<void> answer_completions(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  CompletionRequest request = TRY(parse_completion_request(body, s.engine.info()));
  request.options.client = client_of(http, request.options);
  std::vector<Prompt> prompts;
  std::vector<std::string> echoes;
  for (const Json& one : request.prompts) {
    Prompt prompt;
    if (one.is_string())
      prompt = TRY(s.prompts.plain(one.get_ref<const std::string&>(), /*control=*/true));
    else
      prompt.ids = one.get<std::vector<int32_t>>();
    std::string echo;
    if (request.echo) echo = TRY(s.engine.detokenize(prompt.ids));
    echoes.push_back(std::move(echo));
    prompts.push_back(std::move(prompt));
  }
  std::unique_ptr<AnswerRun> run = TRY(AnswerRun::plain(s.context(), std::move(prompts), request.options));
  send_answers(http, response, std::move(run),
               make_completion_reply(s.model_name, request.options, *s.engine.tokenizer(), std::move(echoes)),
               request.options.stream);
  return {};
}

Result<void> answer_responses(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  ResponsesRequest request = TRY(parse_responses_request(body, s.engine.info(), s.responses));
  request.chat.options.client = client_of(http, request.chat.options);
  std::unique_ptr<AnswerRun> run = TRY(AnswerRun::chat(s.context(), request.chat));
  const bool stream = request.chat.options.stream;
  send_answers(http, response, std::move(run),
               make_responses_reply(s.model_name, std::move(request), s.responses), stream);
  return {};
}

Json models_json(const Server::Impl& s) {
  const ModelInfo& info = s.engine.info();
  Json model = {{"id", s.model_name},
                {"object", "model"},
                {"created", 0},
                {"owned_by", "forebay"},
                {"context_length", info.context},
                {"architecture", info.architecture}};
  return {{"object", "list"}, {"data", Json::array({std::move(model)})}};
}

}  // namespace

void Server::Impl::add_openai_routes() {
  const auto post = [this](const char* path, Result<void> (*answer)(Impl&, const Request&, Response&)) {
    http.Post(path, [this, answer](const Request& request, Response& response) {
      const Result<void> answered = answer(*this, request, response);
      if (!answered) respond_error(request, response, to_api_error(answered.error()));
    });
  };
  post("/v1/chat/completions", answer_chat);
  post("/v1/completions", answer_completions);
  post("/v1/responses", answer_responses);
  http.Get("/v1/models",
           [this](const Request&, Response& response) { respond(response, 200, models_json(*this)); });
  http.Get(R"(/v1/models/(.+))", [this](const Request& request, Response& response) {
    if (request.matches[1] == model_name) return respond(response, 200, models_json(*this)["data"][0]);
    respond_error(request, response,
                  {404, "model: there is only '" + model_name + "'", "model", "model_not_found"});
  });
  http.Post("/v1/embeddings", [](const Request& request, Response& response) {
    respond_error(
        request, response,
        {501, "embeddings: this server runs models that write text; none of them makes embeddings", {}, {}});
  });
}

}  // namespace forebay
