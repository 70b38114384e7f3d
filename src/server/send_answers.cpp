#include "server/anthropic.h"
#include "server/openai_chat.h"
#include "server/server_impl.h"

namespace forebay {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};  // at the client, while there is no news
constexpr std::chrono::seconds kSignOfLife{10};

/// Writes events until the answers are complete. False when the client has gone.
bool stream_answers(AnswerRun& run, Reply& reply, httplib::DataSink& sink) {
  auto last_write = std::chrono::steady_clock::now();
  const auto write = [&](const std::string& text) {
    last_write = std::chrono::steady_clock::now();
    return sink.write(text.data(), text.size());
  };
  while (!run.done()) {
    Result<std::string> text = run.advance(&reply, kLookEvery);
    if (!text) return write(reply.failure(to_api_error(text.error())));
    if (!text->empty()) {
      if (!write(*text)) return false;
    } else if (std::chrono::steady_clock::now() - last_write > kSignOfLife) {
      if (!write(": waiting\n\n")) return false;
    }
    if (HttpServer::peer_is_gone()) return false;
  }
  return true;
}

}  // namespace

void respond(httplib::Response& response, int status, const Json& json) {
  response.status = status;
  response.set_content(dump(json), "application/json");
}

void respond_error(const httplib::Request& request, httplib::Response& response, const ApiError& error) {
  const bool anthropic = request.path.starts_with("/v1/messages");
  respond(response, error.status, anthropic ? anthropic_error(error) : openai_error(error));
  if (error.status == 429 || error.status == 503) response.set_header("Retry-After", "1");
}

void send_answers(const httplib::Request& request, httplib::Response& response,
                  std::unique_ptr<AnswerRun> run, std::unique_ptr<Reply> reply, bool stream) {
  if (stream) {
    response.set_header("Cache-Control", "no-cache");
    // std::function wants copies.
    const auto shared_run = std::shared_ptr<AnswerRun>(std::move(run));
    const auto shared_reply = std::shared_ptr<Reply>(std::move(reply));
    response.set_chunked_content_provider(
        "text/event-stream", [shared_run, shared_reply](size_t, httplib::DataSink& sink) {
          const bool complete = stream_answers(*shared_run, *shared_reply, sink);
          shared_run->cancel();
          if (complete) sink.done();
          return complete;
        });
    return;
  }
  while (!run->done()) {
    const Result<std::string> text = run->advance(nullptr, kLookEvery);
    if (!text) return respond_error(request, response, to_api_error(text.error()));
    // Nobody reads what is answered here; the answer's work stops with `run`.
    if (HttpServer::peer_is_gone())
      return respond_error(request, response, {499, "the client has gone", {}, {}});
  }
  const std::vector<Choice> choices = run->choices();
  respond(response, 200, reply->whole(choices, run->usage()));
}

std::string client_of(const httplib::Request& request, const AnswerOptions& options) {
  return options.client.empty() ? request.remote_addr : "user " + options.client;
}

}  // namespace forebay
