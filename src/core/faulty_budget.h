/// A MemoryBudget that refuses on purpose: the n-th reservation fails, every other one is counted as ever.
/// Beside core/faulty_storage.h, for what a run allocates.
#pragma once

#include <memory>
#include <string>

#include "core/memory_budget.h"

namespace forebay {

/// Thread-safe. A bug (aborts) to destroy it while anything is reserved: what is lost on an error's way
/// shows here.
class FaultyBudget : public MemoryBudget {
 public:
  /// fail_at: 1 = the first reservation; 0 = never.
  explicit FaultyBudget(int fail_at, std::shared_ptr<int> n_faults = {})
      : fail_at_(fail_at), n_faults_(std::move(n_faults)) {}
  ~FaultyBudget() override;

  Result<Reservation> reserve(uint64_t bytes, std::string purpose) override;

 private:
  const int fail_at_;
  const std::shared_ptr<int> n_faults_;  // counts those that were refused
  std::mutex mutex_;
  int n_asked_ = 0;
};

}  // namespace forebay
