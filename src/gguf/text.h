/// Text from files, made safe to show: one line, printable, not too long.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forebay::gguf {

/// 'name' with control characters and bytes that are not UTF-8 as \xNN, cut after max_bytes with "...".
std::string quote(std::string_view text, size_t max_bytes = 96);

/// A JSON string literal; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace forebay::gguf
