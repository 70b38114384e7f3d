#include "program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ostream>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/ensure.h"

extern char** environ;

namespace forebay::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLimit{60};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> command_line(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Ours with `changes` on top.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  for (const std::string& change : changes) {
    const std::string name = change.substr(0, change.find('=') + 1);
    std::erase_if(out, [&](const std::string& entry) { return entry.starts_with(name); });
    out.push_back(change);
  }
  return out;
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Pipe {
  Pipe() { ENSURE(::pipe2(ends, O_CLOEXEC) == 0, "pipe"); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int which) {
    if (ends[which] >= 0) ::close(ends[which]);
    ends[which] = -1;
  }
  int ends[2] = {-1, -1};
};

}  // namespace

std::string program_path() {
  return FOREBAY_PROGRAM;
}

std::ostream& operator<<(std::ostream& stream, const Finished& finished) {
  return stream << "exit code " << finished.code << "\n--- stdout\n"
                << finished.out << "--- stderr\n"
                << finished.err;
}

::testing::AssertionResult is_error(const Finished& finished, int code,
                                    std::initializer_list<std::string_view> parts) {
  const auto failure = [&] { return ::testing::AssertionFailure() << finished << "wanted "; };
  if (finished.code != code) return failure() << "exit code " << code;
  if (!finished.out.empty()) return failure() << "nothing on stdout";
  if (lines_of(finished.err).size() != 1) return failure() << "one line on stderr";
  if (!finished.err.starts_with("forebay: ")) return failure() << "'forebay: ' in front";
  for (const std::string_view part : parts)
    if (finished.err.find(part) == std::string::npos) return failure() << "'" << part << "' in the message";
  return ::testing::AssertionSuccess();
}

Finished run_program(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  std::string_view input = surroundings.input;
  Pipe in, out, err;
  const std::vector<std::string> words = command_line(surroundings.program, arguments);
  const std::vector<std::string> variables = environment_with(surroundings.environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const pid_t child = ::fork();
  ENSURE(child >= 0, "fork");
  if (child == 0) {
    ::dup2(in.ends[0], 0);
    ::dup2(out.ends[1], 1);
    ::dup2(err.ends[1], 2);
    if (!surroundings.output_file.empty()) ::dup2(::open(surroundings.output_file.c_str(), O_WRONLY), 1);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  // A child that does not read its input must not stop us.
  std::signal(SIGPIPE, SIG_IGN);
  ::fcntl(in.ends[1], F_SETFL, O_NONBLOCK);

  Finished finished;
  const auto deadline = Clock::now() + kLimit;
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    if (input.empty()) in.close_end(1);
    pollfd fds[] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}, {in.ends[1], POLLOUT, 0}};
    ::poll(fds, 3, 1000);
    if (Clock::now() > deadline) {
      ::kill(child, SIGKILL);
      break;
    }
    char buffer[65536];
    const auto drain = [&](Pipe& pipe, short events, std::string& text) {
      if (pipe.ends[0] < 0 || events == 0) return;
      const ssize_t n = ::read(pipe.ends[0], buffer, sizeof(buffer));
      if (n <= 0)
        pipe.close_end(0);
      else
        text.append(buffer, static_cast<size_t>(n));
    };
    drain(out, fds[0].revents, finished.out);
    drain(err, fds[1].revents, finished.err);
    if (in.ends[1] >= 0 && fds[2].revents != 0) {
      const ssize_t n = ::write(in.ends[1], input.data(), input.size());
      if (n > 0)
        input.remove_prefix(static_cast<size_t>(n));
      else if (errno != EAGAIN)
        input = {};
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  finished.code = exit_code(status);
  return finished;
}

TerminalProgram::TerminalProgram(const std::vector<std::string>& arguments, int columns,
                                 const std::string& term) {
  const std::vector<std::string> words = command_line(program_path(), arguments);
  const std::vector<std::string> variables = environment_with({"TERM=" + term});
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  ENSURE(child_ >= 0, "forkpty");
  if (child_ == 0) {
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
}

TerminalProgram::~TerminalProgram() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(terminal_);
}

void TerminalProgram::type(std::string_view keys) {
  while (!keys.empty()) {
    const ssize_t n = ::write(terminal_, keys.data(), keys.size());
    ENSURE(n > 0, "write to the terminal");
    keys.remove_prefix(static_cast<size_t>(n));
  }
}

void TerminalProgram::signal(int number) const {
  ::kill(child_, number);
}

bool TerminalProgram::read_some(std::chrono::milliseconds patience) {
  pollfd fd{terminal_, POLLIN, 0};
  if (::poll(&fd, 1, static_cast<int>(patience.count())) <= 0) return false;
  char buffer[4096];
  const ssize_t n = ::read(terminal_, buffer, sizeof(buffer));
  if (n <= 0) return false;
  seen_.append(buffer, static_cast<size_t>(n));
  return true;
}

bool TerminalProgram::sees(std::string_view text, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (true) {
    const size_t at = seen_.find(text, waited_for_);
    if (at != std::string::npos) {
      waited_for_ = at + text.size();
      return true;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || !read_some(left)) return false;
  }
}

int TerminalProgram::finish() {
  while (read_some(kLimit)) {
  }
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  return exit_code(status);
}

}  // namespace forebay::cli
