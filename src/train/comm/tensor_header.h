/// What stands before tensors that go from one process to another: names, types, shapes and lengths, checked.
/// Little-endian: "FBTN", version (4), length of all this (4), tensors (4); per tensor type (1), dimensions
/// (1), length of the name (2), name, sizes (8 each), bytes (8), XXH3 of them (8); then FNV-1a of all before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "forebay/result.h"

#include "train/comm/control_message.h"

namespace forebay::train {

enum class ElementType : uint8_t { kF32 = 1, kF64, kF16, kBF16, kI64, kI32, kU8, kBool };
size_t element_bytes(ElementType type);
std::string_view name_of(ElementType type);

struct TensorHeader {
  static constexpr size_t kMaxDimensions = 8;
  static constexpr size_t kMaxNameBytes = 65535;

  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  uint64_t content = 0;  // fast_checksum() of its bytes

  bool operator==(const TensorHeader&) const = default;
};

/// Errors: kCorrupt for a negative size or more bytes than 2^62.
Result<uint64_t> tensor_bytes(const TensorHeader& header);

/// Errors: kInvalidArgument for a name or a number of dimensions beyond the limits, or a size that is none.
Result<Bytes> encode_tensor_headers(std::span<const TensorHeader> headers);

/// The headers that `bytes` begins with, and how many bytes they take. Never more memory than came. Errors:
/// kCorrupt saying which field has which value and what was wanted.
Result<std::pair<std::vector<TensorHeader>, size_t>> decode_tensor_headers(std::span<const uint8_t> bytes);

}  // namespace forebay::train
