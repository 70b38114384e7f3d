#include "train/comm/timeouts.h"

#include <fmt/format.h>

namespace forebay::train {

Result<void> Timeouts::check() const {
  const Milliseconds none{0};
  if (pg <= none || pg >= step || step >= init)
    return Error{Code::kInvalidArgument,
                 fmt::format("timeouts pg {}, step {}, init {}: each must be longer than the one before",
                             describe(pg), describe(step), describe(init))};
  if (silence <= none || silence >= step)
    return Error{Code::kInvalidArgument, fmt::format("silence {}: must be shorter than a step's {}",
                                                     describe(silence), describe(step))};
  return {};
}

std::string describe(Milliseconds time) {
  if (time.count() < 1000) return fmt::format("{} ms", time.count());
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace forebay::train
