/// Every tensor of a model: name, shape, role, and how its weights are made.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "convert/type_plan.h"
#include "synth/deck.h"
#include "synth/geometry.h"
#include "synth/statistics.h"

namespace forebay::synth {

/// Writes row `row` of a tensor with the tensor's key. Thread-safe.
using RowFunction = std::function<void(Key key, uint64_t row, std::span<float> out)>;

struct SynthTensor {
  std::string name;
  std::vector<uint64_t> ne;  // as in GGUF, ne[0] contiguous
  TensorRole role;
  std::variant<Normal, RowFunction> weights;

  uint64_t n_columns() const { return ne[0]; }
  uint64_t n_rows() const {
    uint64_t n = 1;
    for (size_t i = 1; i < ne.size(); ++i) n *= ne[i];
    return n;
  }
};

/// In the order in which files have them.
std::vector<SynthTensor> list_tensors(const Geometry& geometry, const RoutingStatistics& routing);

}  // namespace forebay::synth
