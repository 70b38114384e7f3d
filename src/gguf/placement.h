/// Where tensors may lie in a file: sizes without overflow, bounds, no overlap, no foreign block layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "gguf/gguf.h"

namespace forebay::gguf {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinAlignment = 8;           // of any element type
constexpr uint64_t kMaxAlignment = 1ull << 31;  // the largest power of two in the key's u32

/// A power of two from kMinAlignment to kMaxAlignment.
bool is_alignment(uint64_t alignment);

/// The first multiple of `alignment` at or after `offset`; empty when that is beyond 64 bits.
std::optional<uint64_t> align_up(uint64_t offset, uint64_t alignment);

/// Bytes of a tensor of these dimensions. Errors: a dimension of 0, a product beyond 2^63 - 1, ne[0] not a
/// multiple of the type's block.
Result<uint64_t> tensor_bytes(DType type, std::span<const uint64_t> ne);

/// Checks that no tensor runs past the file's end or into the tensor after it. Gaps of any size are fine,
/// except behind type id 42: other programs gave that id to other block sizes, and only the room that a
/// tensor got from its writer tells.
Result<void> check_placement(std::span<const TensorInfo> tensors, uint64_t alignment, uint64_t file_bytes);

}  // namespace forebay::gguf
