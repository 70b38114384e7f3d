/// Source text to a Template.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/jinja/ast.h"

namespace forebay::jinja {

/// Fails with a line and what was expected there.
std::unique_ptr<Template> parse_template(std::string_view source);

}  // namespace forebay::jinja
