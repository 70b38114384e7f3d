/// Which tensors of a safetensors file are a model's weights: all of a published checkpoint, and those of a
/// run's own, which also has the optimiser's averages, the reference and more.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "safetensors/safetensors.h"

namespace forebay::train {

class WeightNames {
 public:
  /// Knows step-N.ckpt of `train grpo` (docs/formats/grpo-checkpoint.md) and state.safetensors of `train
  /// pretrain` and `sft`.
  explicit WeightNames(const SafetensorsFile& file);

  /// What the model calls this tensor of the file; none: it is no weight.
  std::optional<std::string> of(std::string_view name) const;
  /// Whether there is more than weights in the file.
  bool is_run() const { return !prefix_.empty(); }

 private:
  std::string prefix_;
};

}  // namespace forebay::train
