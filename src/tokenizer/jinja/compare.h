/// Equality, order, membership and hashes, as Python defines them for these values.
#pragma once

#include <cstdint>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

bool equals(Runtime& runtime, const Value& a, const Value& b);

/// a < b. Fails for types without an order among them.
bool less(Runtime& runtime, const Value& a, const Value& b);
/// a <= b: not the negation of b < a, because of NaN.
bool less_or_equal(Runtime& runtime, const Value& a, const Value& b);

/// `item in container`. Fails when the container is none.
bool contains(Runtime& runtime, const Value& container, const Value& item);

/// Equal values have equal hashes. Fails for lists and dicts: "unhashable type: 'list'".
uint64_t hash_of(Runtime& runtime, const Value& value);
uint64_t hash_of(std::string_view text);
bool is_hashable(Runtime& runtime, const Value& value);

}  // namespace forebay::jinja
