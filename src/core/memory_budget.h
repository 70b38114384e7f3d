/// One owner for the sizes of all large allocations: what is reserved, for what, and the limit.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "forebay/result.h"

namespace forebay {

class MemoryBudget;

/// Bytes counted against a budget while it lives. Move-only.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  uint64_t bytes() const { return bytes_; }

 private:
  friend class MemoryBudget;
  Reservation(MemoryBudget* budget, std::string purpose, uint64_t bytes);
  void release();

  MemoryBudget* budget_ = nullptr;
  std::string purpose_;
  uint64_t bytes_ = 0;
};

/// Thread-safe. Must outlive its reservations.
class MemoryBudget {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  explicit MemoryBudget(uint64_t limit_bytes = kUnlimited) : limit_bytes_(limit_bytes) {}
  virtual ~MemoryBudget() = default;
  MemoryBudget(const MemoryBudget&) = delete;

  /// Errors: kOutOfMemory naming the purpose, the bytes asked, in use and the limit.
  virtual Result<Reservation> reserve(uint64_t bytes, std::string purpose);

  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t used_bytes() const;
  uint64_t peak_bytes() const;
  /// (purpose, bytes) largest first.
  std::vector<std::pair<std::string, uint64_t>> by_purpose() const;

 private:
  friend class Reservation;
  void give_back(const std::string& purpose, uint64_t bytes);

  const uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  uint64_t used_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
  std::map<std::string, uint64_t> by_purpose_;
};

}  // namespace forebay
