/// value is test(...): Jinja's built-in tests.
#pragma once

#include <string_view>

#include "tokenizer/jinja/arguments.h"

namespace forebay::jinja {

struct Test {
  std::string_view name;
  bool (*call)(Runtime& runtime, const Value& value, Arguments& arguments);
};

/// Null when there is none.
const Test* find_test(std::string_view name);

}  // namespace forebay::jinja
