/// Arithmetic expressions of whole numbers, evaluated exactly.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay::train {

/// In lowest terms, den > 0.
struct Fraction {
  int64_t num = 0;
  int64_t den = 1;
  bool operator==(const Fraction&) const = default;
};

struct Evaluated {
  Fraction value;
  std::vector<int64_t> numbers;  // as they stand in the text, left to right
};

/// "+", "-", "*", "/", brackets and unsigned numbers of at most 6 digits; no spaces, no signs. Errors:
/// kCorrupt for anything else, for text over 64 bytes, a division by zero, or a value beyond 2^31.
Result<Evaluated> evaluate(std::string_view text);

}  // namespace forebay::train
