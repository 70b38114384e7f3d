/// TOML text as a flat list of values by full key. The one place that knows which library reads TOML.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "forebay/result.h"

namespace forebay::toml_text {

/// What a recipe has no use for (dates, arrays of arrays, tables in arrays).
struct Other {
  std::string what;  // "a date"
};
using Scalar = std::variant<bool, int64_t, double, std::string>;
using Value = std::variant<bool, int64_t, double, std::string, std::vector<Scalar>, Other>;

struct Entry {
  Value value;
  int line = 0;  // from 1
};

/// By "section.key". Errors, each one line that begins with `name` and the place: kCorrupt; kUnsupported in a
/// build without toml++.
Result<std::map<std::string, Entry>> parse(std::string_view text, std::string_view name);

// The way that resolved recipes write values.
std::string quoted(std::string_view text);
/// With a point or an exponent, shortest that reads back to the same bits.
std::string number(double value);
std::string literal(const Value& value);

}  // namespace forebay::toml_text
