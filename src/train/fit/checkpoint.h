/// All that a run needs to go on, in one file that is there whole or not at all.
#pragma once

#include <map>
#include <string>

#include <torch/torch.h>

#include "core/storage.h"

namespace forebay::train {

/// A safetensors file: f32 tensors, and facts as text.
struct RunState {
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::string> facts;
};

Result<void> save_state(Storage& storage, const Path& path, const RunState& state);
/// Copies the file's tensors into those of `into`, which must be the same ones, and returns the facts.
/// Errors: those of the file; kCorrupt naming a tensor that is missing or of another shape.
Result<std::map<std::string, std::string>> load_state(Storage& storage, const Path& path,
                                                      const std::map<std::string, torch::Tensor>& into);

}  // namespace forebay::train
