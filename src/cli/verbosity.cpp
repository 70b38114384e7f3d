#include "cli/verbosity.h"

#include <cstdlib>
#include <utility>

#include "cli/terminal.h"
#include "core/log.h"

namespace forebay::cli {

void Verbosity::declare(FlagTable& flags) {
  flags.section("Messages");
  flags.toggle("-v,--verbose", verbose, "print the resolved configuration and details on stderr");
  flags.toggle("-q,--quiet", quiet, "print nothing on stderr but errors");
}

Result<void> Verbosity::check() const {
  if (verbose && quiet) return Error{Code::kInvalidArgument, "-v and -q exclude each other"};
  if (verbose) log::set_level(log::Level::kDebug);
  if (quiet) log::set_level(log::Level::kError);
  return {};
}

ProgressStyle progress_style(const Verbosity& verbosity) {
  if (verbosity.quiet) return ProgressStyle::kSilent;
  return verbosity.verbose || is_terminal(stderr) ? ProgressStyle::kAuto : ProgressStyle::kSilent;
}

void log_settings(const FlagTable& flags) {
  for (const Setting& setting : flags.settings()) log::debug("{} = {}", setting.name, setting.value);
}

Result<void> apply_log_environment() {
  const char* word = std::getenv("FOREBAY_LOG");
  if (word == nullptr || *word == '\0') return {};
  constexpr std::pair<std::string_view, log::Level> kLevels[] = {{"debug", log::Level::kDebug},
                                                                 {"info", log::Level::kInfo},
                                                                 {"warn", log::Level::kWarn},
                                                                 {"error", log::Level::kError},
                                                                 {"off", log::Level::kOff}};
  for (const auto& [name, level] : kLevels)
    if (name == word) {
      log::set_level(level);
      return {};
    }
  return Error{Code::kInvalidArgument,
               fmt::format("FOREBAY_LOG: '{}' is not one of debug, info, warn, error, off", word)};
}

}  // namespace forebay::cli
