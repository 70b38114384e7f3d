/// A checkpoint of a GRPO run: every tensor and every number that what follows hangs on. Format:
/// docs/formats/grpo-checkpoint.md.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <torch/torch.h>

#include "core/storage.h"

namespace forebay::train {

struct RunFile {
  std::map<std::string, torch::Tensor> tensors;  // f32 or i64, on the CPU
  std::map<std::string, std::string> facts;
};

/// Atomic. Errors: kIo.
Result<void> write_run_file(Storage& storage, const Path& path, const RunFile& run);
/// Errors: kCorrupt naming the file when it is damaged or of another version; those of reading.
Result<RunFile> read_run_file(Storage& storage, const Path& path);

/// Of names, shapes and bits.
uint64_t tensors_hash(const std::map<std::string, torch::Tensor>& tensors);

/// DIR/step-000060.ckpt
Path run_file_path(const Path& directory, int64_t step);
/// The last step that DIR has a checkpoint of; none: it has none.
Result<std::optional<int64_t>> last_run_file(Storage& storage, const Path& directory);

}  // namespace forebay::train
