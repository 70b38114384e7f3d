/// Deltas onto tensors that are in use: how a sampler that holds its own copy of the weights is refreshed.
#pragma once

#include <map>
#include <string>

#include <torch/torch.h>

#include "train/anchor/delta.h"

namespace forebay::train {

using NamedTensors = std::map<std::string, torch::Tensor>;

/// f32 or bf16 tensors as bf16 bits, on any device. Errors: kUnsupported for another type.
Result<Bf16Tensors> bf16_of(const NamedTensors& tensors);

/// As apply_delta: bf16 tensors then hold the target's bits, f32 tensors those values where bf16 saw a change
/// and what they held elsewhere. Nothing is written unless all of it is right.
Result<void> apply_delta(const Delta& delta, uint64_t at_step, const NamedTensors& tensors);

}  // namespace forebay::train
