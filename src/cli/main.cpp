// Finds the subcommand, lets it parse its flags, runs it, and turns what comes back into one line and an exit
// code.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/verbosity.h"

namespace forebay::cli {
namespace {

std::vector<CommandInfo> all_commands() {
  // One a line, in the order of the overview.
  // clang-format off
  return {
      run_command(),
      serve_command(),
      connect_command(),
      inspect_command(),
      plan_command(),
      doctor_command(),
      convert_command(),
      synth_command(),
      kld_command(),
      scr_test_command(),
      route_curve_command(),
      replay_command(),
      bench_command(),
      pack_command(),
      session_command(),
      tokenize_command(),
      template_command(),
      logits_command(),
  };
  // clang-format on
}

/// One line whatever the message holds.
int fail(std::string message, ExitCode code) {
  std::replace_if(
      message.begin(), message.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  fmt::print(stderr, "forebay: {}\n", message);
  return static_cast<int>(code);
}

void print_examples(const std::vector<Example>& examples) {
  size_t width = 0;
  for (const Example& example : examples) width = std::max(width, example.command.size());
  for (const Example& example : examples) {
    if (example.meaning.empty())
      fmt::print("{}\n", example.command);
    else
      fmt::print("{:<{}}  # {}\n", example.command, width, example.meaning);
  }
}

void print_overview(const std::vector<CommandInfo>& commands) {
  print_examples({{"forebay run -p \"What is 37 + 58?\"", "ask once"},
                  {"forebay run", "chat"},
                  {"forebay inspect model.gguf", "what is in a file"}});
  fmt::print(
      "\nRuns mixture-of-experts language models from GGUF files.\n\nusage: forebay COMMAND [options]\n\n");
  for (const CommandInfo& command : commands) fmt::print("  {:<11} {}\n", command.name, command.summary);
  fmt::print("\nforebay COMMAND --help explains one. forebay --version prints the version.\n");
}

void print_help(const CommandInfo& command, const FlagTable& flags) {
  print_examples(command.examples);
  if (!command.details.empty()) fmt::print("\n{}\n", wrap(command.details, 100, 0));
  fmt::print("\nusage: forebay {} {}\n{}", command.name, command.usage, flags.help());
}

int run_command_line(const CommandInfo& info, std::span<const char* const> arguments) {
  FlagTable flags;
  const std::unique_ptr<Command> command = info.make();
  command->declare(flags);
  const auto misused = [&](const Error& error) {
    return fail(fmt::format("{} (forebay {} --help explains)", error.message, info.name),
                ExitCode::kBadUsage);
  };
  const Result<FlagTable::Parsed> parsed = flags.parse(arguments);
  if (!parsed) return misused(parsed.error());
  if (*parsed == FlagTable::Parsed::kHelp) {
    print_help(info, flags);
    return 0;
  }
  const Result<void> checked = command->check();
  if (!checked) return misused(checked.error());

  const Result<ExitCode> code = command->run(flags);
  if (code) return static_cast<int>(*code);
  const bool cancelled = code.error().code == Code::kCancelled;
  return fail(code.error().message, cancelled ? ExitCode::kInterrupted : ExitCode::kFailed);
}

int dispatch(std::span<const char* const> arguments) {
  const std::vector<CommandInfo> commands = all_commands();
  const std::string name = arguments.size() < 2 ? "" : arguments[1];
  if (name == "--help" || name == "-h") {
    print_overview(commands);
    return 0;
  }
  if (name == "--version") {
    fmt::print("forebay {}\n", FOREBAY_VERSION);
    return 0;
  }
  for (const CommandInfo& command : commands)
    if (command.name == name) return run_command_line(command, arguments.subspan(1));
  if (name.empty()) return fail("no command (forebay --help lists them)", ExitCode::kBadUsage);
  return fail(fmt::format("no command '{}' (forebay --help lists them)", name), ExitCode::kBadUsage);
}

/// What was printed must have arrived: a full disk is no success.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return code == 0 ? fail(fmt::format("standard output: {}", std::strerror(errno)), ExitCode::kFailed) : code;
}

int main(std::span<const char* const> arguments) {
  // Commands that can stop in an orderly way take the signal over.
  std::signal(SIGINT, [](int) { ::_exit(static_cast<int>(ExitCode::kInterrupted)); });
  try {
    if (const Result<void> log = apply_log_environment(); !log)
      return fail(log.error().message, ExitCode::kBadUsage);
    return finish_output(dispatch(arguments));
  } catch (const std::bad_alloc&) {
    return fail("out of memory", ExitCode::kFailed);
  } catch (const std::system_error& error) {
    // fmt throws when it cannot write.
    return fail(fmt::format("standard output: {}", error.code().message()), ExitCode::kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::kFailed);
  }
}

}  // namespace
}  // namespace forebay::cli

int main(int argc, char** argv) {
  return forebay::cli::main({argv, static_cast<size_t>(argc)});
}
