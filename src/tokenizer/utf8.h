/// UTF-8 one character at a time, with the replacement policy of Unicode 3.9 (and Python's "replace"): every
/// maximal prefix of a valid sequence that goes wrong becomes one U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forebay::utf8 {

enum class Status : uint8_t {
  kValid,
  kInvalid,    // no continuation can make it valid
  kTruncated,  // the text ends inside a sequence that is valid so far
};

struct Char {
  uint32_t code_point;  // only when valid
  uint8_t n_bytes;      // of the character, or of the maximal prefix to replace; at least 1
  Status status;
};

/// The character at the start of `text`, which is not empty.
Char first_char(std::string_view text);

/// Bytes before the first invalid or truncated sequence.
size_t valid_prefix_bytes(std::string_view text);

void append(std::string& out, uint32_t code_point);

/// Appends `text` with what is wrong in it replaced by U+FFFD.
void append_replaced(std::string& out, std::string_view text);

}  // namespace forebay::utf8
