#include "train/nets/encode.h"

#include <cstring>

#include <fmt/format.h>

#include "tensor/half.h"

namespace forebay::train {
namespace {

/// What keeps its f32 in a bf16 checkpoint: everything that is not a matrix, and the short filters.
bool is_small(const std::string& name, const torch::Tensor& tensor) {
  return tensor.dim() < 2 || name.find("conv1d") != std::string::npos;
}

void add_ngram_constants(const NgramConfig& n, EncodedTensors& to) {
  if (n.block < 0) return;
  const auto add = [&](const char* name, const std::vector<uint64_t>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(uint64_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    to.add(fmt::format("model.layers.{}.ple.ple_embedding.{}", n.block, name), SafeType::kI64,
           {values.size()}, std::move(bytes));
  };
  add("layer_multipliers", n.multipliers);
  add("ngram_heads_vocab_sizes", n.head_sizes);
  add("ngram_heads_offsets", n.head_offsets);
}

}  // namespace

void EncodedTensors::add(std::string name, SafeType type, std::vector<uint64_t> shape,
                         std::vector<std::byte> data) {
  bytes.push_back(std::move(data));
  entries.push_back({std::move(name), type, std::move(shape), bytes.back()});
}

std::vector<uint64_t> shape_of(const torch::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

EncodedTensors encode_tensors(const ModelConfig& config, const NamedTensors& tensors, SavedType type) {
  EncodedTensors encoded;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor values = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    const float* floats = values.data_ptr<float>();
    const auto n = static_cast<size_t>(values.numel());
    const bool narrow = type == SavedType::kBF16 && !is_small(name, tensor);
    std::vector<std::byte> bytes(n * (narrow ? 2 : 4));
    if (narrow) {
      for (size_t i = 0; i < n; ++i) {
        const uint16_t half = bf16_from_f32(floats[i]);
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      }
    } else {
      std::memcpy(bytes.data(), floats, bytes.size());
    }
    encoded.add(name, narrow ? SafeType::kBF16 : SafeType::kF32, shape_of(tensor), std::move(bytes));
  }
  add_ngram_constants(config.ngram, encoded);
  return encoded;
}

EncodedTensors encode_shapes(const ModelConfig& config, const torch::nn::Module& net) {
  EncodedTensors encoded;
  for (const auto& item : net.named_parameters())
    encoded.add(item.key(), SafeType::kBF16, shape_of(item.value()),
                std::vector<std::byte>(static_cast<size_t>(item.value().numel()) * 2));
  add_ngram_constants(config.ngram, encoded);
  return encoded;
}

}  // namespace forebay::train
