// forebay train monitor: how a checkpoint moved away from its base.
#include <fmt/format.h>

#include "cli/verbosity.h"
#include "core/gnuplot.h"
#include "core/progress.h"
#include "train/monitor/checkpoint_monitor.h"
#include "train/program/commands.h"

namespace forebay::train {
namespace {

using cli::ExitCode;

class MonitorCommand : public cli::Command {
 public:
  void declare(cli::FlagTable& flags) override {
    flags.text("BASE", "", base_,
               "the checkpoint that training began from: a safetensors file or a directory");
    flags.text("CHECKPOINT", "", now_, "a later one of the same model");
    flags.integer("--rank", "N", options_.rank, {0, 1 << 20},
                  "leading directions whose angle is measured; 0: a tenth of the smaller side");
    flags.text("--plot", "FILE", plot_, "draw angles and spectral shift over layers (PNG, by gnuplot)");
    flags.toggle("--json", json_, "print one JSON object, with every matrix");
    verbosity_.declare(flags);
  }
  Result<void> check() override {
    TRY(verbosity_.check());
    if (base_.empty() || now_.empty()) return Error{Code::kInvalidArgument, "BASE and CHECKPOINT are wanted"};
    return {};
  }
  Result<ExitCode> run(const cli::FlagTable&) override {
    const std::unique_ptr<Storage> storage = make_posix_storage();
    std::optional<Progress> bar;
    const auto progress = [&](size_t done, size_t all) {
      if (!bar)
        bar.emplace("monitor", all,
                    ProgressOptions{.style = cli::progress_style(verbosity_), .unit = ProgressUnit::kItems});
      bar->set(done);
    };
    const CheckpointChange change = TRY(compare_checkpoints(*storage, base_, now_, options_, progress));
    bar.reset();
    if (plot_) TRY(draw_png(*storage, *plot_, [&](const Path& out) { return monitor_script(change, out); }));
    fmt::print("{}", json_ ? monitor_json(change) + "\n" : monitor_table(change));
    return ExitCode::kDone;
  }

 private:
  std::string base_, now_;
  std::optional<std::string> plot_;
  MonitorOptions options_;
  bool json_ = false;
  cli::Verbosity verbosity_;
};

}  // namespace

cli::CommandInfo monitor_command() {
  return {.name = "monitor",
          .summary = "how far a checkpoint moved: spectra, angles, changed weights",
          .usage = "BASE CHECKPOINT [options]",
          .examples = {{"forebay train monitor base run/step-120", "a table by layer"},
                       {"forebay train monitor base run/step-120 --json --plot moved.png", "all of it"}},
          .details =
              "Per layer: the share of weights that bf16 sees as changed, the normalised shift of the "
              "singular values, the largest principal angle, how often changes hit the base's principal "
              "entries, and the effective rank of the update. docs/monitors.md says how to read them.",
          .make = [] { return std::unique_ptr<cli::Command>(std::make_unique<MonitorCommand>()); }};
}

}  // namespace forebay::train
