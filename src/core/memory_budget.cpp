#include "core/memory_budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay {

Reservation::Reservation(MemoryBudget* budget, std::string purpose, uint64_t bytes)
    : budget_(budget), purpose_(std::move(purpose)), bytes_(bytes) {}

Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      purpose_(std::move(other.purpose_)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  budget_ = std::exchange(other.budget_, nullptr);
  purpose_ = std::move(other.purpose_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Reservation::~Reservation() {
  release();
}

void Reservation::release() {
  if (budget_ != nullptr) budget_->give_back(purpose_, bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

Result<Reservation> MemoryBudget::reserve(uint64_t bytes, std::string purpose) {
  std::lock_guard lock(mutex_);
  if (bytes > limit_bytes_ - used_bytes_)
    return Error{Code::kOutOfMemory, fmt::format("{}: {} bytes wanted, {} of the budget of {} bytes in use",
                                                 purpose, bytes, used_bytes_, limit_bytes_)};
  if (bytes == 0) return Reservation();  // nothing to give back either
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  by_purpose_[purpose] += bytes;
  return Reservation(this, std::move(purpose), bytes);
}

uint64_t MemoryBudget::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

uint64_t MemoryBudget::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_bytes_;
}

std::vector<std::pair<std::string, uint64_t>> MemoryBudget::by_purpose() const {
  std::vector<std::pair<std::string, uint64_t>> entries;
  {
    std::lock_guard lock(mutex_);
    entries.assign(by_purpose_.begin(), by_purpose_.end());
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return entries;
}

void MemoryBudget::give_back(const std::string& purpose, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto entry = by_purpose_.find(purpose);
  ENSURE(entry != by_purpose_.end() && entry->second >= bytes && used_bytes_ >= bytes,
         "more bytes given back than reserved");
  used_bytes_ -= bytes;
  entry->second -= bytes;
  if (entry->second == 0) by_purpose_.erase(entry);
}

}  // namespace forebay
