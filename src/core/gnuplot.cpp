#include "core/gnuplot.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace forebay {
namespace {

class Script {
 public:
  explicit Script(const std::string& text) : fd_(::memfd_create("plot", MFD_CLOEXEC)) {
    if (fd_ < 0) return;
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n < 0) {
        ::close(std::exchange(fd_, -1));
        return;
      }
      done += static_cast<size_t>(n);
    }
    ::lseek(fd_, 0, SEEK_SET);
  }
  ~Script() {
    if (fd_ >= 0) ::close(fd_);
  }
  Script(const Script&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<void> run_gnuplot(const std::string& text) {
  const Script script(text);
  if (script.fd() < 0) return Error{Code::kIo, fmt::format("gnuplot's script: {}", std::strerror(errno))};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, script.fd(), STDIN_FILENO);
  // stdout is for answers, and no terminal wants a picture's bytes.
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  char name[] = "gnuplot";
  char* const arguments[] = {name, nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed == ENOENT)
    return Error{Code::kNotFound,
                 "there is no gnuplot to draw with: install it, or plot the output of --json"};
  if (failed != 0) return Error{Code::kInternal, fmt::format("gnuplot: {}", std::strerror(failed))};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error{Code::kInternal, fmt::format("gnuplot failed, its wait status is {}", status)};
  return {};
}

}  // namespace

std::string gnuplot_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "'";
}

std::string gnuplot_png(const Path& output) {
  return "set terminal png size 1000,640\nset output " + gnuplot_quoted(output.string()) + "\n";
}

std::string gnuplot_range(std::string_view axis, std::span<const double> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double value = values.empty() ? 0 : *low;
  if (!values.empty() && *low != *high) return "";
  if (value == 0) return fmt::format("set {}range [0:1]\n", axis);
  const double around = std::abs(value) / 2;
  return fmt::format("set {}range [{:.8g}:{:.8g}]\n", axis, value - around, value + around);
}

Result<void> draw_png(Storage& storage, const Path& path,
                      const std::function<std::string(const Path& output)>& script) {
  const Path partial = path.string() + ".partial";
  // gnuplot's own words on a path that cannot be written to are many.
  {
    std::unique_ptr<WritableFile> empty = TRY(storage.create(partial));
    TRY(empty->close());
  }
  Result<void> drawn = run_gnuplot(script(partial));
  if (drawn) {
    const std::unique_ptr<ReadableFile> file = TRY(storage.open(partial));
    if (file->size() == 0)
      drawn = Error{Code::kInternal, fmt::format("{}: gnuplot wrote nothing", path.string())};
  }
  if (!drawn) {
    if (storage.exists(partial)) (void)storage.remove(partial);
    return drawn;
  }
  return storage.rename(partial, path);
}

}  // namespace forebay
