#include "train/program/commands.h"
#include "train/program/fit_command.h"

namespace forebay::train {

cli::CommandInfo pretrain_command() {
  return {
      .name = "pretrain",
      .summary = "a new model, or more of one, from text",
      .usage = "--recipe FILE --out DIR [options]",
      .examples = {{"forebay train pretrain --recipe recipes/pebble.toml --out pebble",
                    "a model from plain text"},
                   {"forebay train pretrain --recipe FILE --out DIR --resume", "go on where it stopped"}},
      .details =
          "Learns to predict every token of text files and conversations. DIR gets metrics.jsonl (a line per "
          "step), the state to resume from, loss.png, and at the end the model as a checkpoint and as a GGUF "
          "file.",
      .make = [] { return std::unique_ptr<cli::Command>(std::make_unique<FitCommand>(Learn::kEverything)); }};
}

}  // namespace forebay::train
