/// What every program of this project does with its command line: find the subcommand, let it parse its
/// flags, run it, and turn what comes back into one line and an exit code.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace forebay::cli {

struct Program {
  std::string name;  // "forebay": before the command in help and errors
  std::string version;
  std::string summary;  // one sentence, for the overview
  std::vector<Example> examples;
  std::vector<CommandInfo> commands;  // in the order of the overview
};

/// The process's exit code. Nothing is thrown.
int run_program(const std::function<Program()>& make_program, std::span<const char* const> arguments);

}  // namespace forebay::cli
