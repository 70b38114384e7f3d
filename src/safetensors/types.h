/// Element types by name, and sizes of shapes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "safetensors/safetensors.h"

namespace forebay::safetensors {

std::optional<SafeType> type_from_name(std::string_view name);

/// Bytes of a tensor of this shape; a scalar has the empty one. Empty beyond 2^63 - 1.
std::optional<uint64_t> checked_bytes(SafeType type, std::span<const uint64_t> shape);

/// "[3, 4]"
std::string shape_string(std::span<const uint64_t> shape);

}  // namespace forebay::safetensors
