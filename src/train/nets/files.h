/// Models in files: checkpoint directories as they are published, and the GGUF files that the engine runs.
/// Names and changes of weights between the two are those of src/convert, in both directions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <torch/torch.h>

#include "core/storage.h"
#include "train/nets/net.h"

namespace forebay::train {

/// Parameters by their published names, f32, on the CPU.
using NamedTensors = std::map<std::string, torch::Tensor>;
NamedTensors named_tensors(const Net& net);

/// Sizes only. `path` is a GGUF file, or a directory with config.json and safetensors.
Result<ModelConfig> read_model_config(Storage& storage, const Path& path);

/// The model of `path`, or the part of it that `span` says (absent: all). Weights of any type become f32.
/// Errors: those of the files; a tensor that is missing or of another shape, by name; as make_net().
Result<std::shared_ptr<Net>> load_net(Storage& storage, const Path& path,
                                      std::optional<StageSpan> span = std::nullopt);

enum class SavedType {
  kF32,   // reads back to the bit
  kBF16,  // matrices rounded; norms and the like stay f32
};

/// DIR/model.safetensors and config.json, which `forebay convert` and load_net() read. All parameters must be
/// there: the stages' tensors put together, where there were stages.
Result<void> save_checkpoint(Storage& storage, const Path& directory, const ModelConfig& config,
                             const NamedTensors& tensors, SavedType type = SavedType::kF32);
Result<void> save_net(Storage& storage, const Path& directory, const Net& net,
                      SavedType type = SavedType::kF32);

/// The GGUF file that the engine runs. `vocabulary` is where the tokenizer comes from: a GGUF file, or a
/// directory with tokenizer.json and what belongs to it; empty: a model of bare ids.
Result<void> write_gguf(Storage& storage, const Path& path, const ModelConfig& config,
                        const NamedTensors& tensors, const Path& vocabulary,
                        SavedType type = SavedType::kF32);
Result<void> write_gguf(Storage& storage, const Path& path, const Net& net, const Path& vocabulary,
                        SavedType type = SavedType::kF32);

}  // namespace forebay::train
