/// What a subcommand is to main.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "cli/flags.h"

namespace forebay::cli {

enum class ExitCode {
  kDone = 0,
  kFailed = 1,
  kBadUsage = 2,
  kMissedGate = 3,  // ran, but a limit that was asked for does not hold
  kInterrupted = 130,
};

/// Confined. main declares the flags, parses, checks and runs, in that order.
class Command {
 public:
  virtual ~Command() = default;
  /// One row per flag, bound to the command's own variables.
  virtual void declare(FlagTable& flags) = 0;
  /// What the flags say together; an error is bad usage.
  virtual Result<void> check() { return {}; }
  /// The answer goes to stdout, everything else to stderr. `flags` is the table that was parsed, for the
  /// commands that print or store their configuration.
  virtual Result<ExitCode> run(const FlagTable& flags) = 0;
};

struct Example {
  std::string command;
  std::string meaning;
};

struct CommandInfo {
  std::string name;
  std::string summary;            // for the list of commands
  std::string usage;              // what follows the name: "[options] MODEL"
  std::vector<Example> examples;  // help opens with them
  std::string details;            // a few sentences
  std::unique_ptr<Command> (*make)() = nullptr;
  // A command that is a program of its own, in the folder of this one: its file name, and what to say when it
  // is not there. It gets all arguments after the command's name.
  std::string beside = {};
  std::string missing = {};
};

// One per file.
CommandInfo run_command();
CommandInfo serve_command();
CommandInfo connect_command();
CommandInfo inspect_command();
CommandInfo plan_command();
CommandInfo doctor_command();
CommandInfo logits_command();
CommandInfo bench_command();
CommandInfo pack_command();
CommandInfo session_command();
CommandInfo train_command();
CommandInfo launch_command();
CommandInfo lab_command();
CommandInfo convert_command();
CommandInfo kld_command();
CommandInfo route_curve_command();
CommandInfo replay_command();
CommandInfo scr_test_command();
CommandInfo synth_command();
CommandInfo tokenize_command();
CommandInfo template_command();

}  // namespace forebay::cli
