/// Other programs, started and watched.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "forebay/result.h"

#include "core/path.h"

namespace forebay {

struct ChildOptions {
  std::vector<std::string> arguments;  // the first is the program, looked for in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  /// Both outputs are appended to it; empty: they are ours.
  Path log;
  bool captured = false;  // both outputs are read from output() and errors(); no log then
};

/// Confined. A process group of its own, which ends with us however we end: more exactly, with
/// the thread that started it. Dropping one that runs kills it.
class ChildProcess {
 public:
  static Result<ChildProcess> start(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// The exit code, 128 + n after signal n; nothing while it runs. What it started ends with it.
  std::optional<int> finished();
  /// To the whole group.
  void signal(int number);
  /// Asks it to end, kills it after `grace`, and waits.
  int stop(std::chrono::milliseconds grace);
  /// Descriptors to read from, non-blocking, as long as this lives; -1 unless captured.
  int output() const { return output_; }
  int errors() const { return errors_; }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  int output_ = -1;
  int errors_ = -1;
  std::optional<int> code_;
};

struct Output {
  int code = 0;
  std::string out;  // stdout
  std::string err;
};
/// Runs it to the end. Errors: kNotFound when there is no such program, kCancelled after `limit`, kIo.
Result<Output> output_of(const std::vector<std::string>& arguments, std::chrono::milliseconds limit);

}  // namespace forebay
