/// What a call passes, and its distribution onto parameters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The named argument taken out, or missing.
  Value take(std::string_view name);
};

/// The arguments in the order of `names`, missing where not given. A parameter named "" is positional only.
/// Fails for too many, unknown, doubled, or fewer than the first `n_required`.
std::vector<Value> bind(std::string_view function, const Arguments& arguments,
                        std::initializer_list<std::string_view> names, size_t n_required);

// Parameters of one type; they fail with its name and the parameter's. Absent means missing or none.
Int int_or(const Value& value, Int if_absent, std::string_view parameter);
bool bool_or(const Value& value, bool if_missing);
std::string text_or(Runtime& runtime, const Value& value, std::string_view if_absent,
                    std::string_view parameter);

/// A count or width that fits what containers can hold.
int64_t size_or(const Value& value, int64_t if_absent, std::string_view parameter);

}  // namespace forebay::jinja
