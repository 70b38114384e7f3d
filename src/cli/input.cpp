#include "cli/input.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace forebay::cli {

Result<std::string> read_standard_input() {
  constexpr size_t kLimitBytes = 1u << 30;
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Error{Code::kIo, fmt::format("standard input: {}", std::generic_category().message(errno))};
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kLimitBytes)
      return Error{Code::kInvalidArgument, fmt::format("standard input: more than {} bytes", kLimitBytes)};
  }
}

Result<std::string> read_argument(Storage& storage, const std::string& path) {
  if (path == "-") return read_standard_input();
  return read_text(storage, path);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace forebay::cli
