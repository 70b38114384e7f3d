/// GPT-2's printable alphabet: each of the 256 bytes has a character, so that token texts are readable
/// strings. Bytes 21-7E, A1-AC and AE-FF stand for themselves; the other 68, in order, are U+0100, U+0101,
/// ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace forebay {

uint32_t character_of_byte(uint8_t byte);
std::optional<uint8_t> byte_of_character(uint32_t code_point);

std::string to_byte_alphabet(std::string_view bytes);
/// Nothing when a character of `text` is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace forebay
