#include "gguf/placement.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gguf/text.h"

namespace forebay {
namespace gguf {
namespace {

/// Block layouts that were published under id 42 before or beside Q2_0 (64 weights in 18 bytes).
struct ForeignLayout {
  uint64_t block_weights;
  uint64_t block_bytes;
  const char* known_as;
};
constexpr ForeignLayout kForeignLayouts[] = {
    {128, 34, "the early PrismML Q2_0 (Ternary-Bonsai files, later PQ2_0)"},
    {256, 42, "the STQ1_0 draft (Hy-MT files)"},
};

/// Whether a writer that padded or did not pad gave exactly this room to n_bytes.
bool fits_exactly(uint64_t n_bytes, uint64_t room_bytes, uint64_t alignment) {
  return room_bytes == n_bytes || room_bytes == align_up(n_bytes, alignment);
}

std::string guess_layout(const TensorInfo& tensor, uint64_t room_bytes, uint64_t alignment) {
  for (const ForeignLayout& layout : kForeignLayouts) {
    if (tensor.ne[0] % layout.block_weights != 0) continue;
    // Smaller than tensor.bytes, which did not overflow.
    const uint64_t n_bytes = tensor.n_elements() / layout.block_weights * layout.block_bytes;
    if (fits_exactly(n_bytes, room_bytes, alignment))
      return fmt::format("looks like {}: {} weights in {} bytes", layout.known_as, layout.block_weights,
                         layout.block_bytes);
  }
  return "looks like no known layout of this id";
}

}  // namespace
}  // namespace gguf

std::string shape_string(const TensorInfo& tensor) {
  const std::span<const uint64_t> ne(tensor.ne.data(), static_cast<size_t>(tensor.n_dims));
  return fmt::format("[{}]", fmt::join(ne, ", "));
}

namespace gguf {

bool is_alignment(uint64_t alignment) {
  return std::has_single_bit(alignment) && alignment >= kMinAlignment && alignment <= kMaxAlignment;
}

std::optional<uint64_t> align_up(uint64_t offset, uint64_t alignment) {
  uint64_t sum;
  if (__builtin_add_overflow(offset, alignment - 1, &sum)) return std::nullopt;
  return sum & ~(alignment - 1);
}

Result<uint64_t> tensor_bytes(DType type, std::span<const uint64_t> ne) {
  const auto ne_string = [&] { return fmt::format("[{}]", fmt::join(ne, ", ")); };
  uint64_t n_elements = 1;
  for (size_t i = 0; i < ne.size(); ++i) {
    if (ne[i] == 0)
      return Error{Code::kCorrupt, fmt::format("dimension {} of {} is 0, wanted 1 or more", i, ne_string())};
    if (__builtin_mul_overflow(n_elements, ne[i], &n_elements) || n_elements > INT64_MAX)
      return Error{Code::kCorrupt, fmt::format("dimensions {}: more than 2^63 - 1 elements", ne_string())};
  }
  const auto block_weights = static_cast<uint64_t>(info(type).block_weights);
  const auto block_bytes = static_cast<uint64_t>(info(type).block_bytes);
  if (ne[0] % block_weights != 0)
    return Error{Code::kCorrupt, fmt::format("dimension 0 of {} is not a multiple of {}, the block of {}",
                                             ne_string(), block_weights, name_of(type))};
  uint64_t n_bytes;
  if (__builtin_mul_overflow(n_elements / block_weights, block_bytes, &n_bytes) || n_bytes > INT64_MAX)
    return Error{Code::kCorrupt,
                 fmt::format("dimensions {} of {}: more than 2^63 - 1 bytes", ne_string(), name_of(type))};
  return n_bytes;
}

Result<void> check_placement(std::span<const TensorInfo> tensors, uint64_t alignment, uint64_t file_bytes) {
  std::vector<const TensorInfo*> by_offset(tensors.size());
  std::transform(tensors.begin(), tensors.end(), by_offset.begin(), [](const TensorInfo& t) { return &t; });
  std::stable_sort(by_offset.begin(), by_offset.end(),
                   [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });

  for (size_t i = 0; i < by_offset.size(); ++i) {
    const TensorInfo& tensor = *by_offset[i];
    const TensorInfo* next = i + 1 < by_offset.size() ? by_offset[i + 1] : nullptr;
    const auto where = [&] {
      return fmt::format("tensor {} ({} {}) at offset {}", quote(tensor.name), name_of(tensor.type),
                         shape_string(tensor), tensor.offset);
    };
    const auto limit = [&] {
      return next == nullptr || next->offset > file_bytes
                 ? fmt::format("the file ends at {}", file_bytes)
                 : fmt::format("tensor {} starts at {}", quote(next->name), next->offset);
    };
    const uint64_t limit_offset = next == nullptr ? file_bytes : std::min(next->offset, file_bytes);
    if (tensor.offset > limit_offset)
      return Error{Code::kCorrupt, fmt::format("{}: needs {} bytes, {}", where(), tensor.bytes, limit())};
    const uint64_t room_bytes = limit_offset - tensor.offset;
    if (tensor.type == DType::kQ2_0 && !fits_exactly(tensor.bytes, room_bytes, alignment))
      return Error{
          Code::kUnsupported,
          fmt::format("{}: needs {} bytes, but its place in the file has {} ({}); type id 42 here {}",
                      where(), tensor.bytes, room_bytes, limit(),
                      guess_layout(tensor, room_bytes, alignment))};
    if (tensor.bytes > room_bytes)
      return Error{Code::kCorrupt, fmt::format("{}: needs {} bytes, but {}", where(), tensor.bytes, limit())};
  }
  return {};
}

}  // namespace gguf
}  // namespace forebay
