#include "train/anchor/delta_files.h"

#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "core/parse.h"
#include "safetensors/safetensors.h"
#include "tensor/half.h"
#include "train/anchor/weights_of.h"

namespace forebay::train {
namespace {

bool is_integer(SafeType type) {
  return type == SafeType::kI64 || type == SafeType::kI32 || type == SafeType::kI16 ||
         type == SafeType::kI8 || type == SafeType::kU8 || type == SafeType::kBool;
}

/// One element's bf16 bits at `at`.
uint16_t bf16_at(SafeType type, const std::byte* at) {
  if (type == SafeType::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return bf16_from_f32(value);
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return type == SafeType::kBF16 ? bits : bf16_from_f32(f32_from_f16(bits));
}

void put_at(SafeType type, std::byte* at, uint16_t bits) {
  if (type == SafeType::kBF16) {
    std::memcpy(at, &bits, 2);
  } else if (type == SafeType::kF32) {
    const uint32_t wide = uint32_t{bits} << 16;  // by hand: a NaN keeps its payload
    std::memcpy(at, &wide, 4);
  } else {
    const uint16_t half = f16_from_f32(f32_from_bf16(bits));
    std::memcpy(at, &half, 2);
  }
}

Result<Bf16Tensors> bf16_of(const SafetensorsFile& file, const Path& path) {
  Bf16Tensors out;
  const WeightNames names(file);
  for (const SafeTensor& tensor : file.tensors()) {
    const std::optional<std::string> name = names.of(tensor.name);
    if (!name || is_integer(tensor.type)) continue;
    if (tensor.type != SafeType::kF32 && tensor.type != SafeType::kF16 && tensor.type != SafeType::kBF16)
      return Error{Code::kUnsupported, fmt::format("{}: {} is {}, wanted F32, F16 or BF16", path.string(),
                                                   tensor.name, name_of(tensor.type))};
    Bf16Tensor& values = out[*name];
    values.shape = tensor.shape;
    values.bits.resize(tensor.n_elements());
    const std::byte* data = file.bytes(tensor).data();
    const auto width = static_cast<size_t>(bytes_of(tensor.type));
    for (size_t i = 0; i < values.bits.size(); ++i) values.bits[i] = bf16_at(tensor.type, data + i * width);
  }
  return out;
}

}  // namespace

Result<Bf16Tensors> read_bf16(Storage& storage, const Path& checkpoint) {
  const SafetensorsFile file = TRY(SafetensorsFile::open(storage, checkpoint));
  return bf16_of(file, checkpoint);
}

Result<std::optional<uint64_t>> step_of(Storage& storage, const Path& checkpoint) {
  const SafetensorsFile file = TRY(SafetensorsFile::open(storage, checkpoint));
  const auto found = file.metadata().find("step");
  if (found == file.metadata().end()) return std::optional<uint64_t>();
  Result<int64_t> step = parse_int(found->second, 0);
  if (!step) return std::move(step).error().in(checkpoint.string() + ": step");
  return std::optional<uint64_t>(static_cast<uint64_t>(*step));
}

Result<void> write_with(Storage& storage, const Path& base, const Bf16Tensors& target, uint64_t step,
                        const Path& out) {
  const SafetensorsFile file = TRY(SafetensorsFile::open(storage, base));
  std::vector<std::vector<std::byte>> changed;
  changed.reserve(file.tensors().size());
  std::vector<SafeTensorData> tensors;
  const WeightNames names(file);
  for (const SafeTensor& tensor : file.tensors()) {
    const std::optional<std::string> name = names.of(tensor.name);
    if (!name) continue;
    const std::span<const std::byte> before = file.bytes(tensor);
    tensors.push_back({*name, tensor.type, tensor.shape, before});
    if (is_integer(tensor.type)) continue;
    const auto found = target.find(*name);
    if (found == target.end() || found->second.bits.size() != tensor.n_elements())
      return Error{Code::kInvalidArgument, fmt::format("{}: no values for {}", base.string(), *name)};
    std::vector<std::byte>& bytes = changed.emplace_back(before.begin(), before.end());
    const auto width = static_cast<size_t>(bytes_of(tensor.type));
    for (size_t i = 0; i < found->second.bits.size(); ++i) {
      std::byte* at = bytes.data() + i * width;
      if (bf16_at(tensor.type, at) != found->second.bits[i]) put_at(tensor.type, at, found->second.bits[i]);
    }
    tensors.back().bytes = bytes;
  }
  std::map<std::string, std::string> metadata;
  if (!names.is_run()) metadata = file.metadata();
  metadata["step"] = std::to_string(step);
  return write_safetensors(storage, out, tensors, metadata);
}

}  // namespace forebay::train
