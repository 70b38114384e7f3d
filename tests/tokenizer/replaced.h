// A text with what is not UTF-8 replaced.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/utf8.h"

namespace forebay {

inline std::string replaced(std::string_view bytes) {
  std::string text;
  utf8::append_replaced(text, bytes);
  return text;
}

}  // namespace forebay
