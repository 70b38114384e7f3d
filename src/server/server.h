/// The HTTP server: one engine behind the APIs of OpenAI and Anthropic.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "forebay/engine.h"

#include "server/scheduler.h"

namespace forebay {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;               // 0: any free one
  std::string api_key = {};      // asked of every request but for / and /health; empty: none
  bool allow_no_key = false;     // serve other addresses than this machine's without a key
  std::string cors_origin = {};  // pages from here may use the API; "*": from anywhere
  std::string model_name = {};   // what the APIs call the model; empty: the file's name
  std::string session_dir = {};  // conversations saved by name; empty: none can be
  uint64_t max_body_bytes = 32 << 20;
  int64_t idle_seconds = 60;     // a connection without a request
  int64_t request_seconds = 60;  // for a request to arrive
  int64_t write_seconds = 30;    // for a client to take something
  int64_t stall_seconds =
      120;                // a pass, or what a file keeps waiting, that takes longer is reported as stuck
  int max_repeats = 512;  // one token so many times in a row ends an answer; 0: never
  SchedulerOptions scheduler = {};
};

/// Errors: kInvalidArgument for an address that needs a key and has none.
Result<void> validate(const ServerOptions& options);

/// Serves from its own threads while it lives. The engine must outlive it and is the server's meanwhile.
class Server {
 public:
  /// Errors: kIo when the address cannot be had; kUnsupported without a vocabulary, or in a build without
  /// cpp-httplib.
  static Result<std::unique_ptr<Server>> start(Engine& engine, ServerOptions options);
  ~Server();

  int port() const;
  SchedulerStatus status() const;
  /// Answers that are being made have `grace` to end; then connections are closed.
  void stop(std::chrono::milliseconds grace);

  struct Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
