/// dict.update(), which dict(...) and namespace(...) share.
#pragma once

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// Sets the entries of `from`, a dict or an iterable of pairs.
void update_dict(Runtime& runtime, Dict& dict, const Value& from);

}  // namespace forebay::jinja
