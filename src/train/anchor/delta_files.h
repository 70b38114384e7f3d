/// Deltas between safetensors checkpoints.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/storage.h"
#include "train/anchor/delta.h"

namespace forebay::train {

/// Tensors of F32, F16 and BF16 rounded to bf16 (to nearest, ties to even; a NaN stays one, that of a BF16
/// tensor keeps its bits). Integer tensors are no part of it, nor is what a run's own checkpoint has besides
/// the weights (weights_of.h). Errors: those of the file, kUnsupported for F64
/// and 8-bit floats.
Result<Bf16Tensors> read_bf16(Storage& storage, const Path& checkpoint);

/// The step in a checkpoint's metadata ("step"), if it has one.
Result<std::optional<uint64_t>> step_of(Storage& storage, const Path& checkpoint);

/// Writes `base` with what differs from its own bf16 values replaced; types and integer tensors as in the
/// base. An F32 weight whose bf16 value did not change keeps its bits. Of a run's checkpoint, the weights
/// only.
Result<void> write_with(Storage& storage, const Path& base, const Bf16Tensors& target, uint64_t step,
                        const Path& out);

}  // namespace forebay::train
