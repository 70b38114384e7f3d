/// Whether a macro's body mentions the special variables.
#pragma once

#include <set>
#include <string>

#include "tokenizer/jinja/ast.h"

namespace forebay::jinja {

/// Those of `names` that `block`, or anything nested in it, reads before an assignment to the same name.
std::set<std::string> used_before_assigned(const Block& block, std::set<std::string> names);

}  // namespace forebay::jinja
