/// Python's two format languages: "%5.1f" % x, and "{:>5.1f}".format(x).
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/arguments.h"

namespace forebay::jinja {

/// `format % values`: a tuple gives one value each, a dict gives them by name, anything else is the one
/// value.
Value percent_format(Runtime& runtime, const Value& format, const Value& values);

/// format.format(*positional, **named)
Value brace_format(Runtime& runtime, const Value& format, const Arguments& arguments);

/// One value by the mini-language of format(): [[fill]align][sign][#][0][width][grouping][.precision][type].
std::string formatted(Runtime& runtime, const Value& value, std::string_view spec);

/// What printf makes of "%.{precision}{conversion}": the exact value, rounded to nearest. Conversions e f g E
/// F G.
std::string float_digits(double value, char conversion, int precision, bool alternate = false);

/// The digits of a magnitude in base 2, 8, 10 or 16.
std::string int_digits(Int value, int base, bool upper_case);

constexpr int kMaxPrecision = 4096;

}  // namespace forebay::jinja
