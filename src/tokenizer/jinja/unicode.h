/// Strings as Python sees them: sequences of code points with properties and letter case.
///
/// Every string in the interpreter is valid UTF-8: templates and contexts are repaired where they enter, and
/// all operations cut between code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace forebay::jinja {

/// The code point that starts at `offset`, and the offset behind it.
struct CodePoint {
  uint32_t value;
  size_t end;
};
CodePoint code_point_at(std::string_view text, size_t offset);
/// The code point that ends at `end` > 0, and where it begins (in `end` of the result).
CodePoint code_point_before(std::string_view text, size_t end);

int64_t n_code_points(std::string_view text);

/// Byte offset of code point number `index`; the size when the text is shorter.
size_t byte_offset(std::string_view text, int64_t index);

/// `text` with invalid sequences replaced by U+FFFD.
std::string repaired(std::string_view text);

void append_code_point(std::string& out, uint32_t code_point);

bool is_space(uint32_t c);  // str.isspace, and what strip() and \s take
bool is_alphabetic(uint32_t c);
bool is_decimal(uint32_t c);
bool is_digit(uint32_t c);
bool is_numeric(uint32_t c);
bool is_alphanumeric(uint32_t c);
bool is_word(uint32_t c);  // \w
bool is_printable(uint32_t c);
bool is_lower(uint32_t c);
bool is_upper(uint32_t c);
bool is_title(uint32_t c);  // neither upper nor lower, but cased: Dz and its like

/// str.upper and its kin, with the mappings that lengthen a text (sharp s) and the final sigma.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalized(std::string_view text);
std::string swapped_case(std::string_view text);
std::string folded_case(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

}  // namespace forebay::jinja
