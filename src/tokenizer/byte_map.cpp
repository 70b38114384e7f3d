#include "tokenizer/byte_map.h"

#include <array>

#include "tokenizer/utf8.h"

namespace forebay {
namespace {

constexpr uint32_t kFirstMoved = 0x100;

struct ByteMap {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, kFirstMoved + 68> byte{};
};

constexpr ByteMap make_byte_map() {
  ByteMap map;
  for (int16_t& byte : map.byte) byte = -1;
  uint16_t next_moved = kFirstMoved;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    uint16_t character = printable ? static_cast<uint16_t>(byte) : next_moved++;
    map.character[static_cast<size_t>(byte)] = character;
    map.byte[character] = static_cast<int16_t>(byte);
  }
  return map;
}

constexpr ByteMap kByteMap = make_byte_map();

}  // namespace

uint32_t character_of_byte(uint8_t byte) {
  return kByteMap.character[byte];
}

std::optional<uint8_t> byte_of_character(uint32_t code_point) {
  if (code_point >= kByteMap.byte.size() || kByteMap.byte[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(kByteMap.byte[code_point]);
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (char byte : bytes) utf8::append(text, character_of_byte(static_cast<uint8_t>(byte)));
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    utf8::Char c = utf8::first_char(text);
    if (c.status != utf8::Status::kValid) return std::nullopt;
    std::optional<uint8_t> byte = byte_of_character(c.code_point);
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    text.remove_prefix(c.n_bytes);
  }
  return bytes;
}

}  // namespace forebay
