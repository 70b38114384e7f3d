/// A model's sizes as the config.json of a published checkpoint, and back.
#pragma once

#include <string>

#include "convert/checkpoint.h"
#include "model/config.h"

namespace forebay::train {

/// What src/convert reads as the same model. The draft head has no key: its tensors say that it is there.
std::string config_json(const ModelConfig& config);

/// The sizes of a checkpoint, with what its tensors say about the draft head, a tied output and the constants
/// of n-grams. Errors: those of reading both; kUnsupported for rope that is scaled.
Result<ModelConfig> model_config(const convert::CheckpointConfig& config, convert::Checkpoint& checkpoint);

}  // namespace forebay::train
