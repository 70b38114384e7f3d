/// Metadata values as text, for people and for JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gguf/gguf.h"

namespace forebay::gguf {

/// "u32", "string[151936]".
std::string type_string(const GgufValue& value);

/// One line: 12, 1e-06, true, 'text', [1, 2, 3, ... 40 in all]. Long strings are cut.
std::string value_string(const GgufValue& value, size_t max_items = 8);

/// A JSON value. Arrays longer than max_items are cut after them; infinities and NaN become null.
std::string value_json(const GgufValue& value, size_t max_items = SIZE_MAX);

}  // namespace forebay::gguf
