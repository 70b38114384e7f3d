// forebay train grpo: improve a model on a task whose answers can be checked.
#include "core/interrupt.h"
#include "core/storage.h"
#include "core/world.h"
#include "train/grpo/trainer.h"
#include "train/program/commands.h"

namespace forebay::train {
namespace {

using cli::ExitCode;
using cli::FlagTable;

double number(const MetricsRow& row, std::string_view name) {
  for (const auto& [key, value] : row.numbers)
    if (key == name) return value;
  return std::nan("");
}

class GrpoCommand : public cli::Command {
 public:
  void declare(FlagTable& flags) override {
    flags.text("--recipe", "FILE", recipe_, "The run's settings");
    flags.texts("--set", "KEY=VALUE", settings_, "One setting in place of the recipe's; may be given again");
    flags.text("--out", "DIR", out_, "Where the record, the checkpoints and the model go");
    flags.toggle("--resume", resume_, "Go on from the last checkpoint of --out");
    flags.toggle("--dry-run", dry_run_, "Print the resolved recipe and do nothing");
  }
  Result<void> check() override {
    if (recipe_.empty()) return Error{Code::kInvalidArgument, "--recipe: no file given"};
    if (out_.empty() && !dry_run_) return Error{Code::kInvalidArgument, "--out: no directory given"};
    return {};
  }

  Result<ExitCode> run(const FlagTable&) override {
    const std::unique_ptr<Storage> storage = make_posix_storage();
    Recipe recipe = TRY(Recipe::read(*storage, recipe_, settings_));
    const World world = TRY(world_from_environment());
    if (dry_run_) {
      TRY(GrpoSettings::read(recipe, world.size));
      if (world.rank > 0) return ExitCode::kDone;
      fmt::print("{}", recipe.resolved());
      return ExitCode::kDone;
    }
    Interrupt interrupt;
    RunObserver observer;
    observer.on_sft = [](int64_t step, double loss) {
      if (step % 50 == 0) fmt::print(stderr, "sft {:5}  loss {:.4f}\n", step, loss);
    };
    observer.on_row = [](const MetricsRow& row) {
      fmt::print(stderr, "step {:5}", number(row, "step"));
      // What is measured before the first step has no answers of its own.
      if (const double reward = number(row, "reward"); !std::isnan(reward))
        fmt::print(stderr, "  reward {:.3f}  gap {:.2e}  kl {:.2e}  {:.2f} s", reward, number(row, "gap"),
                   number(row, "kl_view"), number(row, "step_s"));
      if (const double accuracy = number(row, "val_accuracy"); !std::isnan(accuracy))
        fmt::print(stderr, "  val {:.3f}", accuracy);
      fmt::print(stderr, "\n");
    };
    const auto run = TRY(GrpoRun::open(*storage, std::move(recipe), out_, resume_, std::move(observer),
                                       interrupt.token(), world));
    const Result<void> done = run->run(interrupt.token());
    if (!done && done.error().code != Code::kCancelled) return Error(done.error());
    TRY(run->close());
    if (!done) return Error(done.error());
    if (world.rank == 0) fmt::print("{}\n", (Path(out_) / "model.gguf").string());
    return ExitCode::kDone;
  }

 private:
  std::string recipe_, out_;
  std::vector<std::string> settings_;
  bool resume_ = false;
  bool dry_run_ = false;
};

}  // namespace

cli::CommandInfo grpo_command() {
  return {.name = "grpo",
          .summary = "improve a model on a task with answers that can be checked",
          .usage = "--recipe FILE --out DIR [options]",
          .examples =
              {{"forebay train grpo --recipe recipes/grpo-toy.toml --out toy", "a toy learns to add"},
               {"forebay train grpo --recipe recipes/grpo-toy.toml --out sr4 --set pipeline.stages=4 --set "
                "wire.codec=sr --set wire.bits=4",
                "through 4-bit boundaries"},
               {"forebay train grpo --recipe recipes/grpo-toy.toml --out toy --resume --set run.steps=400",
                "go on"}},
          .details =
              "Answers are drawn by the engine, rewarded by a program, and the policy is improved by GRPO. "
              "DIR/metrics.jsonl has one object per step; docs/grpo.md says what they mean.",
          .make = [] { return std::unique_ptr<cli::Command>(std::make_unique<GrpoCommand>()); }};
}

}  // namespace forebay::train
