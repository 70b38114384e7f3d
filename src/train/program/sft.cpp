#include "train/program/commands.h"
#include "train/program/fit_command.h"

namespace forebay::train {

cli::CommandInfo sft_command() {
  return {
      .name = "sft",
      .summary = "fine-tune on conversations",
      .usage = "--recipe FILE --out DIR [options]",
      .examples = {{"forebay train sft --recipe recipes/sft-smoke.toml --out DIR",
                    "a small model learns its answers"},
                   {"forebay train sft --recipe FILE --set fit.lr=1e-4 --out DIR", "one key changed"}},
      .details =
          "Learns what the assistant says in conversations: .jsonl files with {\"messages\": [...]} per "
          "line, "
          "rendered by the tokenizer's chat template. DIR is as in forebay train pretrain.",
      .make = [] { return std::unique_ptr<cli::Command>(std::make_unique<FitCommand>(Learn::kAssistant)); }};
}

}  // namespace forebay::train
