/// Breaking a paragraph into lines, as Python's textwrap does for the wordwrap filter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

struct WrapStyle {
  int64_t width = 79;
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

std::vector<std::string> wrapped(Runtime& runtime, std::string_view text, const WrapStyle& style);

}  // namespace forebay::jinja
