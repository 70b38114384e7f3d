#include "core/faulty_budget.h"

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay {

FaultyBudget::~FaultyBudget() {
  ENSURE(used_bytes() == 0, "a budget is destroyed after what was reserved from it");
}

Result<Reservation> FaultyBudget::reserve(uint64_t bytes, std::string purpose) {
  {
    std::lock_guard lock(mutex_);
    if (++n_asked_ == fail_at_) {
      if (n_faults_) ++*n_faults_;
      return Error{Code::kOutOfMemory, fmt::format("{}: {} bytes: injected fault", purpose, bytes)};
    }
  }
  return MemoryBudget::reserve(bytes, std::move(purpose));
}

}  // namespace forebay
