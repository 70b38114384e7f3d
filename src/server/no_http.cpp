// In builds without cpp-httplib.
#include "server/server.h"

namespace forebay {

struct Server::Impl {};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
Result<std::unique_ptr<Server>> Server::start(Engine&, ServerOptions) {
  return Error{Code::kUnsupported, "serve: this build has no cpp-httplib (libcpp-httplib-dev)"};
}
int Server::port() const {
  return 0;
}
SchedulerStatus Server::status() const {
  return {};
}
void Server::stop(std::chrono::milliseconds) {}

}  // namespace forebay
