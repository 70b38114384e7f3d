/// HTTP as this server needs it: many idle connections, slow clients that end, and handlers that notice when
/// their client has gone.
#pragma once

#include <atomic>
#include <chrono>

#include <httplib.h>

namespace forebay {

struct HttpLimits {
  size_t max_connections = 1024;  // a thread each
  size_t max_body_bytes = 32 << 20;
  std::chrono::seconds idle{60};     // a connection without a request
  std::chrono::seconds request{60};  // from a request's first byte to its last
  std::chrono::seconds write{30};    // a client that takes nothing at all
};

/// bind_to_port and listen_after_bind as in httplib; handlers run on their connection's thread. Thread-safe.
class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(const HttpLimits& limits);

  /// After binding: let more connections wait to be accepted than the library does.
  void widen_backlog();
  /// From now on connections end after the answer that they wait for.
  void close_connections() { closing_ = true; }

  /// Whether the client of the handler that runs on this thread has closed its side.
  static bool peer_is_gone();

 private:
  bool process_and_close_socket(socket_t socket) override;

  const HttpLimits limits_;
  std::atomic<bool> closing_ = false;
  std::atomic<size_t> n_connections_ = 0;
};

}  // namespace forebay
