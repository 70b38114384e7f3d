// forebay lab: programs of training runs, registered before they start.
#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/verbosity.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "lab/registration.h"
#include "lab/report.h"
#include "lab/runner.h"

namespace forebay::cli {
namespace {

class LabCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<ExitCode> run_cells();
  Result<ExitCode> dry_run(const lab::LabProgram& program, const Path& directory);
  Result<ExitCode> report(const Path& directory);
  static Result<std::string> own_path();

  std::vector<std::string> words_;  // the action and its file or directory
  std::optional<std::string> out_;
  std::string objective_ = "reward";
  bool dry_run_ = false;
  bool no_figures_ = false;
  bool json_ = false;
  Verbosity verbosity_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

void LabCommand::declare(FlagTable& flags) {
  flags.many("ACTION", "", words_, "run FILE, report DIR");
  flags.text("-o,--out", "DIR", out_, "with run: where records and cells go; lab/NAME if absent");
  flags.toggle("--dry-run", dry_run_, "with run: show what each cell changes and start nothing");
  flags.text("--objective", "METRIC", objective_,
             "with report: reward, val_accuracy or another metric that no codec touches");
  flags.toggle("--no-figures", no_figures_, "with report: tables only");
  flags.toggle("--json", json_, "print one JSON object");
  verbosity_.declare(flags);
}

Result<void> LabCommand::check() {
  TRY(verbosity_.check());
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (words_.empty() || (words_[0] != "run" && words_[0] != "report"))
    return refuse(words_.empty() ? "no action: run or report"
                                 : "'" + words_[0] + "': expected run or report");
  if (words_.size() != 2)
    return refuse(words_[0] + (words_[0] == "run" ? " takes one file" : " takes one directory"));
  if (words_[0] == "report" && (out_ || dry_run_)) return refuse("--out and --dry-run are for run");
  return {};
}

Result<std::string> LabCommand::own_path() {
  std::error_code failed;
  const Path path = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return Error{Code::kIo, "this program's own path: " + failed.message()};
  return path.string();
}

Result<ExitCode> LabCommand::run(const FlagTable& flags) {
  log_settings(flags);
  return words_[0] == "run" ? run_cells() : report(words_[1]);
}

Result<ExitCode> LabCommand::dry_run(const lab::LabProgram& program, const Path& directory) {
  const std::string self = TRY(own_path());
  const std::vector<lab::Registration> cells = TRY(lab::register_cells(program, self, directory));
  for (const lab::Registration& cell : cells) {
    std::string change = "root";
    if (cell.variable)
      change = fmt::format("{}: {} -> {}", cell.variable->key, cell.variable->from, cell.variable->to);
    fmt::print("{:<20} {:.12}  {}\n", cell.cell, cell.hash, change);
  }
  return ExitCode::kDone;
}

Result<ExitCode> LabCommand::run_cells() {
  const Interrupt interrupt;
  const lab::LabProgram program = TRY(lab::read_program(*storage_, words_[1]));
  const Path directory = out_ ? Path(*out_) : Path("lab") / program.name;
  if (dry_run_) return dry_run(program, directory);
  lab::RunOptions options;
  options.self = TRY(own_path());
  options.say = [this](const std::string& line) {
    if (!verbosity_.quiet) fmt::print(stderr, "lab: {}\n", line);
  };
  const lab::RunEnd end = TRY(lab::run_program(*storage_, program, directory, options, interrupt.token()));
  const lab::Report made = TRY(lab::make_report(*storage_, directory, objective_));
  if (json_)
    fmt::print("{}\n", lab::as_json(made).dump());
  else
    fmt::print("{}", lab::as_markdown(made));
  if (end == lab::RunEnd::kFailures) return Error{Code::kInternal, "some cells failed: see the table"};
  if (end == lab::RunEnd::kBudget) {
    log::warn("the budget of {:.0f} device seconds is spent", program.budget_s);
    return ExitCode::kMissedGate;
  }
  const bool missed = std::any_of(made.verdicts.begin(), made.verdicts.end(), [](const lab::Json& verdict) {
    return verdict["outcome"] == "fail" && !verdict.value("demoted", false);
  });
  return missed ? ExitCode::kMissedGate : ExitCode::kDone;
}

Result<ExitCode> LabCommand::report(const Path& directory) {
  const lab::Report made = TRY(lab::make_report(*storage_, directory, objective_));
  const std::string text = lab::as_markdown(made);
  AtomicFile file = TRY(AtomicFile::create(*storage_, directory / "report.md"));
  TRY(file.file().append(std::as_bytes(std::span(text))));
  TRY(file.commit());
  if (!no_figures_) TRY(lab::draw_figures(*storage_, made, directory));
  if (json_)
    fmt::print("{}\n", lab::as_json(made).dump());
  else
    fmt::print("{}", text);
  return ExitCode::kDone;
}

}  // namespace

CommandInfo lab_command() {
  return {
      .name = "lab",
      .summary = "run registered training experiments, judge them, report",
      .usage = "run FILE | report DIR [options]",
      .examples = {{"forebay lab run recipes/lab-arms.toml --dry-run", "what each cell changes"},
                   {"forebay lab run recipes/lab-arms.toml --out arms", "run it, or go on with it"},
                   {"forebay lab report arms", "tables and figures of what is there"}},
      .details =
          "A program is a file of cells that differ from their parents in one resolved variable; anything "
          "else is refused. Bars and kill triggers are compiled in and registered before the first step. "
          "Records are added to and never edited; cells that are complete are not run again.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<LabCommand>()); }};
}

}  // namespace forebay::cli
