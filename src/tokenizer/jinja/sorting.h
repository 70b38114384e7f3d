/// Stable sorts by Python's order.
#pragma once

#include <vector>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// `items` in the order of their `keys`; equal ones keep their order even in reverse.
/// Fails when keys have no order.
void sort_by(Runtime& runtime, std::vector<Value>& items, const std::vector<Value>& keys, bool reverse);

}  // namespace forebay::jinja
