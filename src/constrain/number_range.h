/// Numbers between bounds, as a rule: decimal texts compared digit by digit.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "constrain/grammar.h"

namespace forebay {

struct NumberBounds {
  std::optional<nlohmann::ordered_json> min;  // numbers
  std::optional<nlohmann::ordered_json> max;
  bool min_excluded = false;
  bool max_excluded = false;

  bool empty() const { return !min && !max; }
};

/// Adds a rule for the numbers within the bounds, without exponents. Whole numbers have at most 18 digits;
/// others at most 9 before and 6 after the point, bounds with more digits than that before it aside. The rule
/// is unreachable when there are none. Errors: kInvalidArgument for a bound of more than 18 digits before the
/// point.
Result<RuleId> add_number_range(Grammar& grammar, const NumberBounds& bounds, bool integer);

}  // namespace forebay
