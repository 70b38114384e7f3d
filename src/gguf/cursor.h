/// A bounds-checked position in a file's bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "forebay/result.h"

namespace forebay::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read by copying its little-endian fields");

/// `what` in the calls below names the field for an error that says offset, bytes wanted and the limit.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  template <typename T>
  Result<T> take(std::string_view what) {
    if (remaining() < sizeof(T)) return ends_early(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  /// n_bytes as they are, borrowed from the file.
  Result<std::string_view> take_bytes(std::string_view what, uint64_t n_bytes) {
    if (remaining() < n_bytes) return ends_early(what, n_bytes);
    const auto* start = reinterpret_cast<const char*>(bytes_.data() + offset_);
    offset_ += n_bytes;
    return std::string_view(start, n_bytes);
  }

  /// A u64 length and that many bytes.
  Result<std::string_view> take_string(std::string_view what) {
    const auto n_bytes = TRY(take<uint64_t>(what));
    return take_bytes(what, n_bytes);
  }

  Error ends_early(std::string_view what, uint64_t n_bytes) const {
    return {Code::kCorrupt, fmt::format("{} at offset {}: needs {} bytes, the file ends at {}", what, offset_,
                                        n_bytes, bytes_.size())};
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace forebay::gguf
