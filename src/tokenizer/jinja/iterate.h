/// Walking values: for loops, filters and unpacking all see items through here.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

bool is_iterable(const Value& value);

/// An iterator over `value`; an iterator is its own. Fails when the value cannot be walked.
Ref<Iterator> iterate(Runtime& runtime, const Value& value);
/// Backwards; missing for what only goes forwards.
Ref<Iterator> iterate_backwards(Runtime& runtime, const Value& value);

/// len(), for values that have one.
std::optional<Int> length_of(const Value& value);

/// All items.
std::vector<Value> collect(Runtime& runtime, const Value& value);
std::vector<Value> collect(Runtime& runtime, Iterator& iterator);

/// An iterator made of a function that does what Iterator::next does.
Value lazily(Runtime& runtime, std::function<bool(Runtime&, Value&)> next);

/// The entry as a view shows it.
Value view_item(Runtime& runtime, const Dict::Entry& entry, View::Part part);

}  // namespace forebay::jinja
