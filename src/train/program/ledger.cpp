// forebay train ledger: where the gap between sampler and trainer comes from.
#include <fmt/format.h>

#include "core/storage.h"
#include "train/monitor/kl_ledger.h"
#include "train/program/commands.h"

namespace forebay::train {
namespace {

using cli::ExitCode;

class LedgerCommand : public cli::Command {
 public:
  void declare(cli::FlagTable& flags) override {
    flags.text("FILE", "", file_, "log-probs, a view a line: {\"view\": NAME, \"log_probs\": [...]}");
    flags.toggle("--json", json_, "print one JSON object");
  }
  Result<void> check() override {
    if (file_.empty()) return Error{Code::kInvalidArgument, "FILE is wanted"};
    return {};
  }
  Result<ExitCode> run(const cli::FlagTable&) override {
    const std::unique_ptr<Storage> storage = make_posix_storage();
    const std::string text = TRY(read_text(*storage, file_));
    const std::vector<LedgerView> views = TRY(parse_views(text, file_));
    const KlLedger ledger = TRY(make_ledger(views));
    fmt::print("{}", json_ ? ledger_json(ledger) + "\n" : ledger_table(ledger));
    return ExitCode::kDone;
  }

 private:
  std::string file_;
  bool json_ = false;
};

}  // namespace

cli::CommandInfo ledger_command() {
  return {.name = "ledger",
          .summary = "take the gap between sampler and trainer apart",
          .usage = "FILE [--json]",
          .examples = {{"forebay train ledger views.jsonl", "a term from each view to the next"}},
          .details =
              "The views are of the same tokens, in the order in which shortcuts are added; the terms add "
              "up to the gap between the first and the last.",
          .make = [] { return std::unique_ptr<cli::Command>(std::make_unique<LedgerCommand>()); }};
}

}  // namespace forebay::train
