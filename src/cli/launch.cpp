// forebay launch: the processes of one program on this machine, as torchrun would start them.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/verbosity.h"
#include "core/child_process.h"
#include "core/free_port.h"
#include "core/interrupt.h"

namespace forebay::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{5};  // how often children are looked at

constexpr int kSignal = 128;  // the exit code of who is killed is more than that

std::string describe(int code) {
  if (code <= kSignal) return fmt::format("exit code {}", code);
  return fmt::format("signal {} ({})", code - kSignal, ::strsignal(code - kSignal));
}

/// What a rank wrote, line by line with its number in front.
class PrefixedLines {
 public:
  PrefixedLines(int rank, int from, std::FILE* to)
      : prefix_(fmt::format("[{}] ", rank)), from_(from), to_(to) {}

  int from() const { return from_; }
  /// Takes what is there.
  void read_on() {
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(from_, buffer, sizeof(buffer))) > 0) rest_.append(buffer, static_cast<size_t>(n));
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      print(rest_.substr(0, end));
      rest_.erase(0, end + 1);
    }
  }
  /// The last line, which has no end.
  void finish() {
    read_on();
    if (!rest_.empty()) print(std::exchange(rest_, {}));
  }

 private:
  void print(const std::string& line) {
    fmt::print(to_, "{}{}\n", prefix_, line);
    std::fflush(to_);
  }

  std::string prefix_;
  int from_;
  std::FILE* to_;
  std::string rest_;
};

class LaunchCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<void> start_all(int port);
  /// Until all have ended. Who failed first is in failed_.
  void look_after_them(const Interrupt& interrupt);
  void show_output(std::chrono::milliseconds patience);
  void stop_all(int signal);

  int n_ = 1;
  std::optional<int> world_;
  int first_rank_ = 0;
  std::string host_ = "127.0.0.1";
  std::optional<int> port_;
  bool prefix_ = false;
  int grace_s_ = 5;
  std::vector<std::string> words_;
  Verbosity verbosity_;

  std::vector<ChildProcess> children_;
  std::vector<PrefixedLines> lines_;
  std::optional<size_t> failed_;
};

void LaunchCommand::declare(FlagTable& flags) {
  flags.integer("-n,--processes", "N", n_, {1, 4096}, "processes on this machine");
  flags.toggle("--prefix", prefix_, "put a rank's number in front of each line that it prints");
  flags.integer(
      "--grace", "SECONDS", grace_s_, {0, 3600},
      "when one has failed, or after Ctrl-C: how long the others may take to end before they are killed");
  flags.section("Several machines, each with a launch of its own");
  flags.integer("--world", "N", world_, {1, 1 << 20}, "processes on all machines; without it, -n");
  flags.integer("--first-rank", "RANK", first_rank_, {0, 1 << 20}, "of the first process here");
  flags.text("--host", "HOST", host_, "rank 0's machine, where all meet");
  flags.integer("--port", "PORT", port_, {1, 65535}, "a free port there; on one machine it is found");
  flags.many("COMMAND", "", words_, "after --: the program that each process runs, with its arguments");
  verbosity_.declare(flags);
}

Result<void> LaunchCommand::check() {
  TRY(verbosity_.check());
  if (words_.empty())
    return Error{Code::kInvalidArgument, "no command: forebay launch -n 2 -- forebay train grpo ..."};
  const int world = world_.value_or(n_);
  if (first_rank_ + n_ > world)
    return Error{Code::kInvalidArgument, fmt::format("ranks {} to {} of {}: --world is too small",
                                                     first_rank_, first_rank_ + n_ - 1, world)};
  if (world > n_ && !port_)
    return Error{Code::kInvalidArgument, "--port is missing: machines must agree on one"};
  return {};
}

Result<void> LaunchCommand::start_all(int port) {
  ChildOptions program{.arguments = words_, .environment = {}, .log = {}, .captured = prefix_};
  // The word alone means this very program, wherever it is.
  if (words_[0] == "forebay") program.arguments[0] = "/proc/self/exe";
  const unsigned n_cores = std::max(1u, std::thread::hardware_concurrency());
  for (int local = 0; local < n_; ++local) {
    program.environment = {
        {"RANK", fmt::format("{}", first_rank_ + local)},
        {"WORLD_SIZE", fmt::format("{}", world_.value_or(n_))},
        {"LOCAL_RANK", fmt::format("{}", local)},
        {"LOCAL_WORLD_SIZE", fmt::format("{}", n_)},
        {"MASTER_ADDR", host_},
        {"MASTER_PORT", fmt::format("{}", port)},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"OMP_NUM_THREADS", fmt::format("{}", std::max(1u, n_cores / static_cast<unsigned>(n_)))}};
    children_.push_back(TRY(ChildProcess::start(program)));
    if (!prefix_) continue;
    lines_.emplace_back(first_rank_ + local, children_.back().output(), stdout);
    lines_.emplace_back(first_rank_ + local, children_.back().errors(), stderr);
  }
  return {};
}

void LaunchCommand::show_output(std::chrono::milliseconds patience) {
  std::vector<pollfd> ends;
  for (const PrefixedLines& lines : lines_)
    ends.push_back({.fd = lines.from(), .events = POLLIN, .revents = 0});
  ::poll(ends.data(), ends.size(), static_cast<int>(patience.count()));
  bool had_any = false;
  for (size_t i = 0; i < ends.size(); ++i) {
    if ((ends[i].revents & POLLIN) == 0) continue;
    lines_[i].read_on();
    had_any = true;
  }
  // Ends of children that are gone stay readable, with nothing in them.
  if (!had_any && !ends.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void LaunchCommand::stop_all(int signal) {
  for (ChildProcess& child : children_) child.signal(signal);
}

void LaunchCommand::look_after_them(const Interrupt& interrupt) {
  std::optional<Clock::time_point> kill_at;
  for (size_t n_running = children_.size(); n_running > 0;) {
    show_output(kLook);
    n_running = 0;
    for (size_t i = 0; i < children_.size(); ++i) {
      const std::optional<int> code = children_[i].finished();
      if (!code) ++n_running;
      // Of those found at one look, a signal is the likelier cause: who loses a peer ends with an exit code.
      if (!code || *code == 0 || kill_at) continue;
      if (!failed_ || (*code > kSignal && *children_[*failed_].finished() <= kSignal)) failed_ = i;
    }
    if (!kill_at && (failed_ || interrupt.requested())) {
      stop_all(interrupt.requested() ? SIGINT : SIGTERM);
      kill_at = Clock::now() + std::chrono::seconds(grace_s_);
    }
    if (kill_at && Clock::now() >= *kill_at) stop_all(SIGKILL);
  }
  for (PrefixedLines& lines : lines_) lines.finish();
}

Result<ExitCode> LaunchCommand::run(const FlagTable&) {
  const int port = port_ ? *port_ : TRY(free_port());
  const Interrupt interrupt;
  TRY(start_all(port));
  look_after_them(interrupt);
  TRY(check_stop(interrupt.token()));
  if (failed_)
    return Error{Code::kIo, fmt::format("rank {} of {} failed first, with {}: {}",
                                        first_rank_ + static_cast<int>(*failed_), world_.value_or(n_),
                                        describe(*children_[*failed_].finished()), fmt::join(words_, " "))};
  return ExitCode::kDone;
}

}  // namespace

CommandInfo launch_command() {
  return {
      .name = "launch",
      .summary = "the processes of a distributed run",
      .usage = "-n N [options] -- COMMAND [arguments]",
      .examples = {{"forebay launch -n 4 -- forebay train grpo --recipe FILE --out DIR", "four stages here"},
                   {"forebay launch -n 2 --prefix -- sh -c 'echo rank $RANK of $WORLD_SIZE'",
                    "what each process is told"}},
      .details =
          "Starts the command N times with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, "
          "MASTER_PORT "
          "and OMP_NUM_THREADS set. When one fails the others are stopped, and the error names the first. "
          "Ctrl-C "
          "goes to all. No process outlives the launch.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<LaunchCommand>()); }};
}

}  // namespace forebay::cli
