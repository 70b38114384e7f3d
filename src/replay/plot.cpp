#include "replay/plot.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace forebay {
namespace {

/// In gnuplot's single quotes, where nothing but the quote itself is special.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "'";
}

std::string series_name(const ReplayConfig& config, bool with_half_life) {
  std::string name(name_of(config.policy));
  if (with_half_life) name += fmt::format(" {:g}", config.half_life);
  if (config.bias.lambda > 0) name += fmt::format(", bias {:g}", config.bias.lambda);
  return name;
}

/// Where it is in the list, at whose end it is put if it is new.
template <typename T>
size_t index_in(std::vector<T>& list, const T& item) {
  const auto at = std::find(list.begin(), list.end(), item);
  const auto index = static_cast<size_t>(at - list.begin());
  if (at == list.end()) list.push_back(item);
  return index;
}

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
  // stdout is for answers.
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
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

std::string plot_script(const RouteLog& log, const std::vector<ReplayRow>& rows, const Path& output) {
  const auto has_half_lives = [&rows](const ReplayConfig& config) {
    return std::any_of(rows.begin(), rows.end(), [&](const ReplayRow& other) {
      return other.result.config.policy == config.policy && other.result.config.half_life != config.half_life;
    });
  };
  // A colour per policy and half-life, a point shape per bias; MIN is black.
  struct Series {
    std::string name;
    size_t colour, shape;
    std::map<double, double> misses;  // per token, by size in percent
  };
  std::vector<Series> all;
  std::vector<std::string> colours;
  std::vector<float> shapes;
  for (const ReplayRow& row : rows) {
    ReplayConfig config = row.result.config;
    const std::string name = series_name(config, has_half_lives(config));
    auto series = std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.name == name; });
    if (series == all.end()) {
      const size_t shape = index_in(shapes, config.bias.lambda);
      config.bias.lambda = 0;
      const size_t colour = index_in(colours, series_name(config, has_half_lives(config)));
      series = all.insert(all.end(), {name, colour, shape, {}});
    }
    const double percent =
        100 * static_cast<double>(config.budget_bytes) / static_cast<double>(log.total_slot_bytes());
    series->misses[percent] = row.misses_per_token();
  }
  std::string script = "set terminal png size 1000,640\n";
  script += "set output " + in_quotes(output.string()) + "\n";
  script += "set title " +
            in_quotes("Expert cache: " + (log.header.model.empty() ? "trace" : log.header.model)) +
            " noenhanced\n";
  script += "set xlabel 'slots, % of all experts'\nset ylabel 'misses per token'\n";
  script += "set grid\nset yrange [0:*]\nset key outside right noenhanced\n";
  for (size_t i = 0; i < all.size(); ++i) {
    script += fmt::format("$s{} << EOD\n", i);
    for (const auto& [percent, misses] : all[i].misses)
      script += fmt::format("{:.6g} {:.6g}\n", percent, misses);
    script += "EOD\n";
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string colour =
        all[i].name == name_of(std::nullopt) ? "rgb 'black'" : std::to_string(all[i].colour + 1);
    script += fmt::format("{} $s{} using 1:2 with linespoints linewidth 2 linecolor {} pointtype {} title {}",
                          i == 0 ? "plot" : ",", i, colour, all[i].shape + 1, in_quotes(all[i].name));
  }
  return script + "\n";
}

Result<void> plot_misses(Storage& storage, const RouteLog& log, const std::vector<ReplayRow>& rows,
                         const Path& path) {
  const Path partial = path.string() + ".partial";
  Result<void> drawn = run_gnuplot(plot_script(log, rows, partial));
  if (drawn && !storage.exists(partial))
    drawn = Error{Code::kInternal, fmt::format("{}: gnuplot wrote nothing", path.string())};
  if (!drawn) {
    if (storage.exists(partial)) (void)storage.remove(partial);
    return drawn;
  }
  return storage.rename(partial, path);
}

}  // namespace forebay
