/// When a run is cut short. As with gates, the limits are in this code and a program names them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "forebay/result.h"

#include "lab/series.h"

namespace forebay::lab {

enum class KillReason {
  kGapHigh,      // the gap is above its limit after the first ten steps
  kAccuracyLow,  // validation is below its limit at the first measurement from a step on
  kDenseKlHigh,  // far from the reference without codec: the policy itself has gone
  kNotFinite,    // a loss, reward or gap that is no number
  kRatioMoved,   // the old and the trained log-probs of one batch differ
  kEarlyStop,    // the one cut that was planned
  kStalled,      // no step for a long time
  kTimeLimit,    // the cell's own
  kBudget,       // the program's
};
std::string_view name_of(KillReason reason);

struct KillTrigger {
  std::string_view name;
  KillReason reason;
  double limit;
  int64_t step;  // from which on it looks
  std::string_view why;
};

std::span<const KillTrigger> all_triggers();
/// Errors: kNotFound with the names there are.
Result<KillTrigger> trigger_named(std::string_view name);

struct Kill {
  KillReason reason;
  std::string detail;  // "gap 14.41 at step 37, limit 14.3"
};
/// The first step that a trigger does not let pass. kStalled looks at `idle`, the time since the last step.
std::optional<Kill> check(const KillTrigger& trigger, const Series& run, std::chrono::duration<double> idle);

}  // namespace forebay::lab
