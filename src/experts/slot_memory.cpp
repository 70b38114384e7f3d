#include "experts/slot_memory.h"

#include <algorithm>
#include <utility>

#include "core/huge_pages.h"
#include "core/page_range.h"

namespace forebay {

SlotMemory::Piece& SlotMemory::Piece::operator=(Piece&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(own_, other.own_);
  std::swap(home_, other.home_);
  std::swap(reservation_, other.reservation_);
  return *this;
}

SlotMemory::Piece::~Piece() {
  if (home_ == nullptr) return;
  give_pages_back({data_, bytes_});
  home_->free_.push_back(data_);
}

SlotMemory::SlotMemory(MemoryBudget& budget, uint64_t slot_bytes, int64_t n_slots) : budget_(budget) {
  if (slot_bytes == 0 || slot_bytes % kPageBytes != 0 || n_slots == 0) return;
  Result<Buffer> region =
      Buffer::allocate(addresses_, slot_bytes * static_cast<uint64_t>(n_slots), "addresses", PageSize::kHuge);
  if (!region) return;  // slots apart then
  region_ = std::move(region).value();
  slot_bytes_ = slot_bytes;
  free_.reserve(static_cast<size_t>(n_slots));
  for (int64_t i = n_slots; i-- > 0;) free_.push_back(region_.data() + static_cast<uint64_t>(i) * slot_bytes);
}

void SlotMemory::limit(int64_t n_slots) {
  const uint64_t used = std::min(region_.bytes(), static_cast<uint64_t>(n_slots) * slot_bytes_);
  // Slots that are taken may lie anywhere after a larger limit.
  const bool from_the_start = free_.size() * slot_bytes_ == region_.bytes();
  decline_huge_pages(
      {region_.data() + (from_the_start ? used : 0), region_.bytes() - (from_the_start ? used : 0)});
}

Result<SlotMemory::Piece> SlotMemory::take(uint64_t bytes) {
  Piece piece;
  if (bytes != slot_bytes_ || free_.empty()) {
    piece.own_ = TRY(Buffer::allocate(budget_, bytes, "experts"));
    piece.data_ = piece.own_.data();
  } else {
    piece.reservation_ = TRY(budget_.reserve(bytes, "experts"));
    piece.data_ = free_.back();
    piece.home_ = this;
    free_.pop_back();
  }
  piece.bytes_ = bytes;
  return piece;
}

}  // namespace forebay
