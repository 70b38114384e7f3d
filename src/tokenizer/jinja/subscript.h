/// value.name, value[key] and value[start:stop:step].
#pragma once

#include <string_view>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// An attribute or method, else an item; undefined when there is neither. Fails for an undefined value.
Value attribute_of(Runtime& runtime, const Value& value, std::string_view name);

/// An item, else an attribute; undefined when there is neither. Fails for an undefined value.
Value item_of(Runtime& runtime, const Value& value, const Value& key);

/// Bounds are integers or absent.
Value slice_of(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
               const Value& step);

/// Only what is an attribute, as the attr filter wants it; undefined otherwise.
Value pure_attribute_of(Runtime& runtime, const Value& value, std::string_view name);

}  // namespace forebay::jinja
