/// value | filter(...): Jinja's built-in filters, but random ones and those that write HTML pages; and tojson
/// as chat templates know it.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/jinja/arguments.h"

namespace forebay::jinja {

struct Filter {
  std::string_view name;
  Value (*call)(Runtime& runtime, const Value& value, Arguments& arguments);
};

/// Null when there is none.
const Filter* find_filter(std::string_view name);

// By subject; find_filter looks through all.
std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> lazy_filters();

}  // namespace forebay::jinja
