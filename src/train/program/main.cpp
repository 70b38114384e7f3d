// The forebay-train program, which `forebay train` starts: its commands.
#include "cli/entry.h"
#include "train/program/commands.h"

namespace forebay::train {
namespace {

std::vector<cli::CommandInfo> all_commands() {
  // One a line.
  // clang-format off
  return {
      pretrain_command(),
      sft_command(),
      grpo_command(),
      monitor_command(),
      ledger_command(),
      delta_command(),
  };
  // clang-format on
}

cli::Program program() {
  return {
      .name = "forebay train",
      .version = FOREBAY_VERSION,
      .summary = "Trains small language models, on one machine or across a slow link.",
      .examples = {{"forebay train grpo --recipe recipes/grpo-toy.toml --out toy", "a model learns to add"}},
      .commands = all_commands()};
}

}  // namespace
}  // namespace forebay::train

int main(int argc, char** argv) {
  return forebay::cli::run_program(forebay::train::program, {argv, static_cast<size_t>(argc)});
}
