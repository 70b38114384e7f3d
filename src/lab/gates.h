/// What a run is held to. Bars are in this code, not in files or flags: a program names gates, and nobody can
/// move a bar after seeing the numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "forebay/result.h"

#include "lab/series.h"
#include "lab/slope.h"

namespace forebay::lab {

enum class Statistic {
  kMean,       // of the window
  kSlope,      // per step, over the window
  kGain,       // last value measured minus the first; the errors of two shares of `val_items` answers
  kOfControl,  // the window's mean over the control's
  kMax,        // the largest value, which has no error
};
enum class Side { kAtLeast, kAtMost };

struct Gate {
  std::string_view name;
  std::string_view metric;
  Statistic statistic;
  int64_t first, last;  // steps, both included
  Side side;
  double bar;
  bool demoted;  // reported, decides nothing: it reads a codec's view
  std::string_view why;
};

std::span<const Gate> all_gates();
/// Errors: kNotFound with the names there are.
Result<Gate> gate_named(std::string_view name);

enum class Outcome { kPass, kFail, kUninformative };
std::string_view name_of(Outcome outcome);

struct Verdict {
  Outcome outcome = Outcome::kUninformative;
  Estimate estimate;
  double minimum_detectable = 0;  // in the statistic's units
  std::string note;               // why it is uninformative
};

/// kPass and kFail are said only when the whole 95 % interval is on that side of the bar; a slope passes only
/// if its minimum detectable size is below the bar as well. Never looks beyond the window.
Verdict judge(const Gate& gate, const Series& run, const Series* control);

}  // namespace forebay::lab
