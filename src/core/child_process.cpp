#include "core/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(const Fd&) = delete;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

Error system_error(std::string_view what) {
  return {errno == ENOENT ? Code::kNotFound : Code::kIo, fmt::format("{}: {}", what, std::strerror(errno))};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

/// Our environment with `added` in place of what it names.
std::vector<std::string> merged(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : added)
      replaced = replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : added) out.push_back(name + "=" + value);
  return out;
}

/// The new process, with its outputs at these descriptors (-1: ours).
Result<pid_t> spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                    int out, int err) {
  if (arguments.empty()) return Error{Code::kInvalidArgument, "no program to start"};
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  int report[2];  // closed by exec; else the child's errno
  if (::pipe2(report, O_CLOEXEC) != 0) return system_error("pipe");
  const Fd reader(report[0]);
  Fd writer(report[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return system_error(arguments[0]);
  if (pid == 0) {
    // Between fork and exec nothing may allocate or lock.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDONLY);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
    if (out >= 0) ::dup2(out, STDOUT_FILENO);
    if (err >= 0) ::dup2(err, STDERR_FILENO);
    if (::getppid() == parent) ::execvpe(argv[0], argv.data(), envp.data());
    const int failed = errno;
    (void)!::write(report[1], &failed, sizeof failed);
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // whoever comes first
  writer.reset();
  int failed = 0;
  ssize_t n;
  do {
    n = ::read(reader.get(), &failed, sizeof failed);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  errno = failed;
  return system_error(arguments[0]);
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  if (options.captured) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return system_error("pipe");
    Fd out_reader(out[0]);
    const Fd out_writer(out[1]);
    if (::pipe2(err, O_CLOEXEC) != 0) return system_error("pipe");
    Fd err_reader(err[0]);
    const Fd err_writer(err[1]);
    ChildProcess child(
        TRY(spawn(options.arguments, merged(options.environment), out_writer.get(), err_writer.get())));
    for (const Fd* reader : {&out_reader, &err_reader}) ::fcntl(reader->get(), F_SETFL, O_NONBLOCK);
    child.output_ = out_reader.release();
    child.errors_ = err_reader.release();
    return child;
  }
  Fd log;
  if (!options.log.empty()) {
    log.reset(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (log.get() < 0) return system_error(options.log.string());
  }
  return ChildProcess(TRY(spawn(options.arguments, merged(options.environment), log.get(), log.get())));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      code_(other.code_) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !finished()) stop(std::chrono::milliseconds(0));
  for (const int end : {output_, errors_})
    if (end >= 0) ::close(end);
}

std::optional<int> ChildProcess::finished() {
  if (code_ || pid_ <= 0) return code_;
  siginfo_t info = {};
  // Looked at before it is reaped: as long as it is a zombie, its number is no other group's.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  code_ = exit_code(status);
  return code_;
}

void ChildProcess::signal(int number) {
  if (pid_ > 0 && !code_) ::kill(-pid_, number);
}

int ChildProcess::stop(std::chrono::milliseconds grace) {
  signal(SIGTERM);
  const Clock::time_point end = Clock::now() + grace;
  while (!finished() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // What the group's first process left behind goes as well.
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
  while (!finished()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return *code_;
}

Result<Output> output_of(const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return system_error("pipe");
  const Fd out_reader(out[0]);
  Fd out_writer(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return system_error("pipe");
  const Fd err_reader(err[0]);
  Fd err_writer(err[1]);
  const pid_t pid = TRY(spawn(arguments, merged({}), out[1], err[1]));
  out_writer.reset();
  err_writer.reset();

  Output output;
  const Clock::time_point end = Clock::now() + limit;
  pollfd waits[2] = {{out_reader.get(), POLLIN, 0}, {err_reader.get(), POLLIN, 0}};
  std::string* texts[2] = {&output.out, &output.err};
  bool late = false;
  while (!late && (waits[0].fd >= 0 || waits[1].fd >= 0)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    late = left.count() <= 0;
    if (late || ::poll(waits, 2, static_cast<int>(std::min<int64_t>(left.count(), 1000))) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(waits[i].fd, buffer, sizeof buffer);
      if (n > 0) texts[i]->append(buffer, static_cast<size_t>(n));
      if (n == 0) waits[i].fd = -1;
    }
  }
  if (late) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (late)
    return Error{Code::kCancelled, fmt::format("{}: did not end within {} ms", arguments[0], limit.count())};
  output.code = exit_code(status);
  return output;
}

}  // namespace forebay
