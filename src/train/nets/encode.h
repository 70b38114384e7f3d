/// Tensors as the entries of a safetensors file.
#pragma once

#include <deque>
#include <vector>

#include "safetensors/safetensors.h"
#include "train/nets/files.h"

namespace forebay::train {

/// Entries, and the bytes that they point to.
struct EncodedTensors {
  std::vector<SafeTensorData> entries;
  std::deque<std::vector<std::byte>> bytes;

  void add(std::string name, SafeType type, std::vector<uint64_t> shape, std::vector<std::byte> data);
};

std::vector<uint64_t> shape_of(const torch::Tensor& tensor);

/// The parameters, and the constants of n-grams that belong to them.
EncodedTensors encode_tensors(const ModelConfig& config, const NamedTensors& tensors, SavedType type);
/// The same names and shapes with zeros: for who plans, and reads no values.
EncodedTensors encode_shapes(const ModelConfig& config, const torch::nn::Module& net);

}  // namespace forebay::train
