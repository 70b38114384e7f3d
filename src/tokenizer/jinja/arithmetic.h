/// The operators + - * / // % ** and the signs, for numbers, texts and sequences.
#pragma once

#include <cstdint>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

enum class Operator : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

std::string_view symbol_of(Operator op);

Value apply(Runtime& runtime, Operator op, const Value& a, const Value& b);
Value negated(const Value& value);
/// +value
Value same_number(const Value& value);

/// Truncated like int(); fails for what is beyond Int, infinite or not a number.
Int int_of(double value);

/// value rounded to `n_digits` behind the point, ties on the exact binary value to even.
double rounded(double value, Int n_digits);

}  // namespace forebay::jinja
