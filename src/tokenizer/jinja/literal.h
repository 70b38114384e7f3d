/// Numbers and strings as template source spells them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace forebay::jinja {

/// How much of `text`, which begins with a digit, is a float or an integer: 1_000, 0xff, 1.5, 2e-3. 0: not a
/// float.
size_t float_literal_size(std::string_view text);
size_t integer_literal_size(std::string_view text);

double float_literal(std::string_view text);
/// Absent beyond 128 bits.
std::optional<Int> integer_literal(std::string_view text);

/// Digits of a base, with single underscores between them. Absent for anything else and beyond 128 bits.
std::optional<Int> parse_digits(std::string_view text, int base);

/// A string's inside with Python's escapes resolved. Fails for broken ones.
std::string unescaped(std::string_view text);

}  // namespace forebay::jinja
