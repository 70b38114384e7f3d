/// Owned, aligned memory counted against a MemoryBudget. Views into it are plain spans and pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "forebay/result.h"

#include "core/memory_budget.h"

namespace forebay {

enum class PageSize : uint8_t { kUsual, kHuge };

/// Zero-filled; physical pages appear when first touched. Move-only, freed when dropped.
class Buffer {
 public:
  static constexpr size_t kAlignment = 4096;

  Buffer() = default;
  /// With kHuge, it begins at a border of huge pages and is asked to be of them (core/huge_pages.h); its size
  /// stays what it is. Errors: kOutOfMemory from the budget or from the system, naming `purpose`.
  static Result<Buffer> allocate(MemoryBudget& budget, uint64_t bytes, std::string purpose,
                                 PageSize pages = PageSize::kUsual);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  Reservation reservation_;
};

}  // namespace forebay
