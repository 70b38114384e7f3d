/// Text to numbers, as Python's int() and float() read it.
#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace forebay::jinja {

/// Spaces around, a sign, underscores; a 0x, 0o or 0b that fits the base. Base 0 goes by that prefix.
std::optional<Int> parse_int(std::string_view text, int base);

/// Also inf, infinity and nan.
std::optional<double> parse_float(std::string_view text);

}  // namespace forebay::jinja
