/// Values as text: Python's str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// What printing a value shows. Undefined shows nothing.
std::string str_of(Runtime& runtime, const Value& value);
std::string repr_of(Runtime& runtime, const Value& value);

/// str_of as a value; a string is itself, with its markup.
Value soft_str(Runtime& runtime, const Value& value);

/// The shortest digits that read back as the same double: "1.0", "1e+16", "inf".
std::string float_repr(double value);
/// 'it', "it's", 'tab\t'.
std::string quoted(std::string_view text);

/// `text` with & < > ' " as HTML entities.
std::string html_escaped(std::string_view text);
/// The value HTML-escaped and marked safe, unless it is already.
Value escaped(Runtime& runtime, const Value& value);

}  // namespace forebay::jinja
