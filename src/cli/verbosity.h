/// How much a command says on stderr: -v, -q, and what -v prints.
#pragma once

#include "cli/flags.h"
#include "core/progress.h"

namespace forebay::cli {

struct Verbosity {
  bool verbose = false;
  bool quiet = false;

  void declare(FlagTable& flags);
  /// Sets the log level; an error when both are given.
  Result<void> check() const;
};

/// A bar on a terminal; elsewhere nothing, or with -v a line now and then.
ProgressStyle progress_style(const Verbosity& verbosity);

/// Logs the resolved configuration, a line per setting, for -v.
void log_settings(const FlagTable& flags);

/// The log level from FOREBAY_LOG (debug, info, warn, error, off), which flags overrule.
/// Errors: kInvalidArgument for another word.
Result<void> apply_log_environment();

}  // namespace forebay::cli
