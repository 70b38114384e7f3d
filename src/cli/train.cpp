// forebay train: the trainer is a program beside this one, so that libtorch is loaded only by who trains.
#include "cli/command.h"

namespace forebay::cli {

CommandInfo train_command() {
  return {
      .name = "train",
      .summary = "pretrain, fine-tune, GRPO",
      .usage = "pretrain|sft|grpo|... [options]",
      .examples = {{"forebay train grpo --recipe recipes/grpo-toy.toml --out toy", "a model learns to add"},
                   {"forebay train sft --recipe FILE --set fit.lr=1e-4 --out DIR", "one key changed"},
                   {"forebay train grpo --recipe FILE --out DIR --resume", "go on where it stopped"}},
      .details =
          "Trains small models of the families that the engine runs, on one machine or across a slow link. "
          "forebay train grpo --help explains one kind of training.",
      .beside = "forebay-train",
      .missing =
          "this build has no trainer: install libtorch-dev, libgloo-dev and libtomlplusplus-dev, and "
          "configure with -DFOREBAY_TRAIN=ON"};
}

}  // namespace forebay::cli
