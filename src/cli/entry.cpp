#include "cli/entry.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/verbosity.h"

namespace forebay::cli {
namespace {

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

void print_overview(const Program& program) {
  print_examples(program.examples);
  fmt::print("\n{}\n\nusage: {} COMMAND [options]\n\n", program.summary, program.name);
  for (const CommandInfo& command : program.commands)
    fmt::print("  {:<11} {}\n", command.name, command.summary);
  fmt::print("\n{0} COMMAND --help explains one. {0} --version prints the version.\n", program.name);
}

void print_help(const Program& program, const CommandInfo& command, const FlagTable& flags) {
  print_examples(command.examples);
  if (!command.details.empty()) fmt::print("\n{}\n", wrap(command.details, 100, 0));
  fmt::print("\nusage: {} {} {}\n{}", program.name, command.name, command.usage, flags.help());
}

int run_command_line(const Program& program, const CommandInfo& info,
                     std::span<const char* const> arguments) {
  FlagTable flags;
  const std::unique_ptr<Command> command = info.make();
  command->declare(flags);
  const auto misused = [&](const Error& error) {
    return fail(fmt::format("{} ({} {} --help explains)", error.message, program.name, info.name),
                ExitCode::kBadUsage);
  };
  const Result<FlagTable::Parsed> parsed = flags.parse(arguments);
  if (!parsed) return misused(parsed.error());
  if (*parsed == FlagTable::Parsed::kHelp) {
    print_help(program, info, flags);
    return 0;
  }
  const Result<void> checked = command->check();
  if (!checked) return misused(checked.error());

  const Result<ExitCode> code = command->run(flags);
  if (code) return static_cast<int>(*code);
  const bool cancelled = code.error().code == Code::kCancelled;
  return fail(code.error().message, cancelled ? ExitCode::kInterrupted : ExitCode::kFailed);
}

/// `forebay train ...` is another program beside this one: what it needs is not loaded by every other
/// command.
int run_beside(const Program& program, const CommandInfo& info, std::span<const char* const> arguments) {
  if (arguments.size() < 2 || std::strcmp(arguments[1], "--help") == 0 ||
      std::strcmp(arguments[1], "-h") == 0) {
    const bool asked = arguments.size() >= 2;
    if (!asked)
      return fail(fmt::format("{} {}: say what to do ({} {} --help lists it)", program.name, info.name,
                              program.name, info.name),
                  ExitCode::kBadUsage);
    print_help(program, info, FlagTable());
    return 0;
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / info.beside;
  std::vector<char*> argv;
  std::string name = beside.string();
  argv.push_back(name.data());
  for (const char* argument : arguments.subspan(1)) argv.push_back(const_cast<char*>(argument));
  argv.push_back(nullptr);
  if (!error) ::execv(name.c_str(), argv.data());
  return fail(fmt::format("{}: {} ({})", name, std::strerror(errno), info.missing), ExitCode::kFailed);
}

int dispatch(const Program& program, std::span<const char* const> arguments) {
  const std::string name = arguments.size() < 2 ? "" : arguments[1];
  if (name == "--help" || name == "-h") {
    print_overview(program);
    return 0;
  }
  if (name == "--version") {
    fmt::print("{} {}\n", program.name, program.version);
    return 0;
  }
  for (const CommandInfo& command : program.commands) {
    if (command.name != name) continue;
    const std::span<const char* const> rest = arguments.subspan(1);
    return command.beside.empty() ? run_command_line(program, command, rest)
                                  : run_beside(program, command, rest);
  }
  if (name.empty())
    return fail(fmt::format("no command ({} --help lists them)", program.name), ExitCode::kBadUsage);
  return fail(fmt::format("no command '{}' ({} --help lists them)", name, program.name), ExitCode::kBadUsage);
}

/// What was printed must have arrived: a full disk is no success.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return code == 0 ? fail(fmt::format("standard output: {}", std::strerror(errno)), ExitCode::kFailed) : code;
}

}  // namespace

int run_program(const std::function<Program()>& make_program, std::span<const char* const> arguments) {
  // Commands that can stop in an orderly way take the signal over.
  std::signal(SIGINT, [](int) { ::_exit(static_cast<int>(ExitCode::kInterrupted)); });
  try {
    if (const Result<void> log = apply_log_environment(); !log)
      return fail(log.error().message, ExitCode::kBadUsage);
    return finish_output(dispatch(make_program(), arguments));
  } catch (const std::bad_alloc&) {
    return fail("out of memory", ExitCode::kFailed);
  } catch (const std::system_error& error) {
    // fmt throws when it cannot write.
    return fail(fmt::format("standard output: {}", error.code().message()), ExitCode::kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::kFailed);
  }
}

}  // namespace forebay::cli
