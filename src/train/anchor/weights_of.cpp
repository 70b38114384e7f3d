#include "train/anchor/weights_of.h"

#include <algorithm>

namespace forebay::train {

WeightNames::WeightNames(const SafetensorsFile& file) {
  const auto has = [&](std::string_view start) {
    return std::ranges::any_of(file.tensors(),
                               [start](const SafeTensor& t) { return t.name.starts_with(start); });
  };
  if (has("policy.") && has("reference."))
    prefix_ = "policy.";
  else if (has("model.") && has("adam.m."))
    prefix_ = "model.";
}

std::optional<std::string> WeightNames::of(std::string_view name) const {
  if (!name.starts_with(prefix_)) return std::nullopt;
  return std::string(name.substr(prefix_.size()));
}

}  // namespace forebay::train
