/// Ctrl-C as a stop_token.
#pragma once

#include <stop_token>
#include <thread>

#include "forebay/result.h"

namespace forebay {

/// Handles SIGINT and SIGTERM while it lives, then puts the earlier handlers back. The first signal requests
/// a stop; the second ends the process with exit code 130. main owns it, at most one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool requested() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

/// kCancelled "interrupted" when a stop was requested.
inline Result<void> check_stop(const std::stop_token& token) {
  if (token.stop_requested()) return Error{Code::kCancelled, "interrupted"};
  return {};
}

}  // namespace forebay
