#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace forebay::train {

/// A learning rate that rises linearly over `warmup` steps, then falls along half a cosine to `floor` times
/// its peak.
struct Schedule {
  double peak = 1e-3;
  double floor = 0.1;
  int64_t warmup = 0, steps = 1;

  /// Of step 1, 2, ..., steps.
  double at(int64_t step) const {
    if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
    const double done =
        static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, steps - warmup));
    return peak * (floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done))));
  }
};

}  // namespace forebay::train
