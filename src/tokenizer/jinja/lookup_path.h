/// The attribute arguments of filters: "address.city", "items.0", or a number.
#pragma once

#include <vector>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

class LookupPath {
 public:
  /// An absent attribute means the item itself.
  LookupPath(Runtime& runtime, const Value& attribute);

  /// Undefined parts of the way become `if_undefined`, unless that is absent.
  Value of(Runtime& runtime, Value item, const Value& if_undefined = {}) const;

 private:
  std::vector<Value> keys_;
};

/// The value that sorting and grouping go by: lower case, unless case matters.
Value sort_key(Runtime& runtime, const Value& value, bool case_sensitive);

}  // namespace forebay::jinja
