/// Where tensors live, by the name that a recipe gives it.
#pragma once

#include <string>

#include <torch/torch.h>

#include "forebay/result.h"

namespace forebay::train {

/// "cpu", "cuda" or "cuda:1". Errors, naming `key`: kInvalidArgument for other words, kUnsupported for a
/// device that is not here.
Result<torch::Device> device_named(const std::string& key, const std::string& name);

}  // namespace forebay::train
