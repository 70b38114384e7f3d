#include "server/server_impl.h"

namespace forebay {
namespace {

using Request = httplib::Request;
using Response = httplib::Response;

Result<void> save(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  const Fields fields(body);
  const std::string name = TRY(fields.required_string("name"));
  const std::optional<int64_t> slot = TRY(fields.integer("slot", 0, 1 << 20));
  const int64_t n_tokens = TRY(s.sessions->save(name, slot));
  respond(response, 200, {{"name", name}, {"tokens", n_tokens}});
  return {};
}

Result<void> restore(Server::Impl& s, const Request& http, Response& response) {
  const Json body = TRY(parse_object(http.body));
  const std::string name = TRY(Fields(body).required_string("name"));
  const int64_t n_tokens = TRY(s.sessions->restore(name));
  respond(response, 200, {{"name", name}, {"tokens", n_tokens}});
  return {};
}

Result<void> list(Server::Impl& s, const Request&, Response& response) {
  Json all = Json::array();
  for (const NamedSessions::Saved& saved : TRY(s.sessions->list()))
    all.push_back({{"name", saved.name}, {"bytes", saved.bytes}});
  respond(response, 200, {{"sessions", std::move(all)}});
  return {};
}

}  // namespace

void Server::Impl::add_session_routes() {
  const auto guarded = [this](Result<void> (*answer)(Impl&, const Request&, Response&)) {
    return [this, answer](const Request& request, Response& response) {
      const Result<void> answered = answer(*this, request, response);
      if (!answered) respond_error(request, response, to_api_error(answered.error()));
    };
  };
  http.Get("/v1/sessions", guarded(list));
  http.Post("/v1/sessions/save", guarded(save));
  http.Post("/v1/sessions/restore", guarded(restore));
}

}  // namespace forebay
