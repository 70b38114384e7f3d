#include "server/server.h"

#include <fmt/format.h>

#include "server/server_impl.h"

namespace forebay {
namespace {

std::string stem_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

HttpLimits limits_of(const ServerOptions& o) {
  HttpLimits limits;
  limits.max_body_bytes = o.max_body_bytes;
  limits.idle = std::chrono::seconds(o.idle_seconds);
  limits.request = std::chrono::seconds(o.request_seconds);
  limits.write = std::chrono::seconds(o.write_seconds);
  return limits;
}

}  // namespace

Server::Impl::Impl(Engine& engine, ServerOptions o, const HttpLimits& limits)
    : engine(engine),
      options(std::move(o)),
      model_name(options.model_name.empty() ? stem_of(engine.info().path) : options.model_name),
      access{options.api_key, options.cors_origin, is_loopback(options.host)},
      prompts(engine),
      http(limits) {}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::start(Engine& engine, ServerOptions options) {
  TRY(validate(options));
  if (engine.tokenizer() == nullptr) return engine.tokenize("").error();
  auto impl = std::make_unique<Impl>(engine, options, limits_of(options));
  options.scheduler.on_cut_off = [directory = options.session_dir](size_t slot, const Session& session) {
    save_cut_off(session, slot, directory);
  };
  impl->scheduler = TRY(Scheduler::start(engine, options.scheduler));
  impl->sessions.emplace(*impl->scheduler, options.session_dir);
  impl->add_gate();
  impl->add_openai_routes();
  impl->add_anthropic_routes();
  impl->add_text_routes();
  impl->add_page_routes();
  impl->add_session_routes();
  impl->add_status_routes();
  if (options.port == 0) {
    impl->port = impl->http.bind_to_any_port(options.host);
  } else {
    impl->port = impl->http.bind_to_port(options.host, options.port) ? options.port : -1;
  }
  if (impl->port < 0)
    return Error{Code::kIo, fmt::format("{}:{}: cannot listen there (is another server running?)",
                                        options.host, options.port)};
  impl->http.widen_backlog();
  impl->listener = std::thread([s = impl.get()] { s->http.listen_after_bind(); });
  // stop() before the listener runs would be lost.
  while (!impl->http.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() {
  stop(std::chrono::milliseconds(0));
}

int Server::port() const {
  return impl_->port;
}

SchedulerStatus Server::status() const {
  return impl_->scheduler->status();
}

void Server::stop(std::chrono::milliseconds grace) {
  if (!impl_->listener.joinable()) return;
  impl_->stopping = true;
  impl_->scheduler->stop(grace);
  impl_->http.close_connections();
  impl_->http.stop();
  impl_->listener.join();
}

}  // namespace forebay
