/// What the server's routes share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "server/access.h"
#include "server/answer_run.h"
#include "server/http_server.h"
#include "server/named_sessions.h"
#include "server/openai_responses.h"
#include "server/reply.h"
#include "server/server.h"

namespace forebay {

struct Server::Impl {
  Impl(Engine& engine, ServerOptions options, const HttpLimits& limits);

  Engine& engine;
  const ServerOptions options;
  const std::string model_name;
  const AccessRules access;
  PromptMaker prompts;
  ResponseStore responses;
  std::unique_ptr<Scheduler> scheduler;
  std::optional<NamedSessions> sessions;
  HttpServer http;
  std::thread listener;
  int port = 0;
  std::atomic<bool> stopping = false;

  AnswerContext context() {
    return {engine, prompts, *scheduler, static_cast<double>(options.stall_seconds), options.max_repeats};
  }

  // One file each.
  void add_gate();              // gate.cpp: keys, origins, unknown paths, exceptions
  void add_openai_routes();     // openai_routes.cpp
  void add_anthropic_routes();  // anthropic_routes.cpp
  void add_text_routes();       // text_routes.cpp: tokenize, detokenize, apply-template
  void add_page_routes();       // page_routes.cpp: the web page
  void add_session_routes();    // session_routes.cpp: save, restore, list
  void add_status_routes();     // status_routes.cpp: health, metrics, status
};

void respond(httplib::Response& response, int status, const Json& json);
/// In the words of the protocol whose path this is.
void respond_error(const httplib::Request& request, httplib::Response& response, const ApiError& error);

/// Runs the answers of a request and sends them: as events while they come, or as one object.
void send_answers(const httplib::Request& request, httplib::Response& response,
                  std::unique_ptr<AnswerRun> run, std::unique_ptr<Reply> reply, bool stream);

/// Who takes turns: what the request says, else the address.
std::string client_of(const httplib::Request& request, const AnswerOptions& options);

}  // namespace forebay
