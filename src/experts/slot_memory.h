/// Memory of the slots of an expert cache. Where all slots have one size they lie side by side in huge pages
/// (core/huge_pages.h): an expert of 1 to 5 MiB alone is too small to be of many.
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/result.h"

#include "core/memory_budget.h"
#include "tensor/buffer.h"

namespace forebay {

/// Confined.
class SlotMemory {
 public:
  /// A slot's memory. Move-only; what it held goes back to the system when it is dropped. SlotMemory outlives
  /// it.
  class Piece {
   public:
    Piece() = default;
    Piece(Piece&& other) noexcept { *this = std::move(other); }
    Piece& operator=(Piece&& other) noexcept;
    ~Piece();

    std::byte* data() const { return data_; }
    uint64_t bytes() const { return bytes_; }

   private:
    friend class SlotMemory;
    std::byte* data_ = nullptr;
    uint64_t bytes_ = 0;
    Buffer own_;                  // where slots are of several sizes
    SlotMemory* home_ = nullptr;  // else
    Reservation reservation_;     // counts it there
  };

  /// slot_bytes: the one size of all slots, n_slots of them at most; 0: they have several.
  SlotMemory(MemoryBudget& budget, uint64_t slot_bytes, int64_t n_slots);

  /// That many slots are used at most, from now on: huge pages reach no further, so that the system never
  /// holds more for them than they have.
  void limit(int64_t n_slots);
  /// Errors: kOutOfMemory.
  Result<Piece> take(uint64_t bytes);

 private:
  MemoryBudget& budget_;
  MemoryBudget addresses_;  // of the region, which takes memory only where slots are
  Buffer region_;
  uint64_t slot_bytes_ = 0;
  std::vector<std::byte*> free_;  // the first of the region last
};

}  // namespace forebay
