/// The functions every template can call: range, dict, namespace, cycler, joiner, and what chat templates
/// have besides: raise_exception and strftime_now.
#pragma once

#include <string_view>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// Missing when there is no such global.
Value make_global(Runtime& runtime, std::string_view name);

}  // namespace forebay::jinja
