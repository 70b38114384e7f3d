/// Cuts a template into tokens, with Jinja's white space control: trim_blocks and lstrip_blocks are on, one
/// newline at the end of the template is dropped.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/jinja/token.h"

namespace forebay::jinja {

/// The last token is kEnd, or kInvalid where the rest cannot be read.
std::vector<Token> tokenize(std::string_view source);

}  // namespace forebay::jinja
