/// The recipe's sections that pretraining and fine-tuning read: [model], [data], [fit], [train].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "train/fit/fit.h"
#include "train/nets/toy.h"

namespace forebay::train {

struct FitSettings {
  // [model]: one of `from` (go on from these weights), `like` (the sizes of that model, new weights), or a
  // family with sizes.
  std::string from, like, family = "qwen3", tokenizer;
  DenseSizes dense;
  HyperSizes hyper;
  // [data]
  std::vector<std::string> train, validation;
  // [fit] and [train]
  FitOptions fit;
  int64_t threads = 0;  // of libtorch; 0: its own choice
  bool save_bf16 = false;
};

/// Asks for every key; the caller finishes the recipe.
FitSettings read_fit_settings(Recipe& recipe);

/// The model that [model] says. Errors: those of load_net(); kInvalidArgument for `from` and `like` together.
Result<std::shared_ptr<Net>> make_model(Storage& storage, const FitSettings& settings);

}  // namespace forebay::train
