/// The built program as a child process: on pipes, or on a terminal of its own.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "core/parse.h"

namespace forebay::cli {

/// The executable that this build made.
std::string program_path();

struct Finished {
  int code = -1;  // exit code; 128 + n after signal n
  std::string out;
  std::string err;
};

std::ostream& operator<<(std::ostream& stream, const Finished& finished);

struct Surroundings {
  std::string program = program_path();
  std::string_view input = {};                // on standard input
  std::vector<std::string> environment = {};  // "NAME=value", on top of ours
  std::string output_file = {};               // standard output goes there
};

/// Runs `program arguments` to its end; killed after a minute.
Finished run_program(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});

/// One error line on stderr, nothing on stdout, and this exit code.
::testing::AssertionResult is_error(const Finished& finished, int code,
                                    std::initializer_list<std::string_view> parts);

/// The program on a pseudo-terminal: what a person types and sees. Confined.
class TerminalProgram {
 public:
  explicit TerminalProgram(const std::vector<std::string>& arguments, int columns = 80,
                           const std::string& term = "xterm");
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;

  void type(std::string_view keys);
  /// Waits until `text` appears after what earlier calls waited for; false when it does not.
  bool sees(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(20));
  /// Everything so far, control sequences included.
  const std::string& seen() const { return seen_; }
  /// Reads to the end and waits: the exit code as in Finished.
  int finish();
  void signal(int number) const;

 private:
  bool read_some(std::chrono::milliseconds patience);

  pid_t child_ = -1;
  int terminal_ = -1;
  std::string seen_;
  size_t waited_for_ = 0;
};

}  // namespace forebay::cli
