#include "gguf/text.h"

#include <cstdint>

#include <fmt/format.h>

namespace forebay::gguf {
namespace {

/// Bytes of the well-formed UTF-8 character at the start of `text`, 0 when there is none (RFC 3629: no
/// overlong forms, no surrogates, nothing above U+10FFFF).
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n_bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < n_bytes) return 0;
  for (size_t i = 1; i < n_bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const uint8_t second = byte(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool out_of_range = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return overlong || out_of_range ? 0 : n_bytes;
}

bool is_control(char c) {
  return static_cast<uint8_t>(c) < 0x20 || c == 0x7f;
}

}  // namespace

std::string quote(std::string_view text, size_t max_bytes) {
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > max_bytes) {
      out += "...";
      break;
    }
    const size_t n_bytes = character_bytes(text);
    if (n_bytes == 0 || is_control(text[0]))
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    else
      out += text.substr(0, n_bytes);
    text.remove_prefix(n_bytes == 0 ? 1 : n_bytes);
  }
  return out += '\'';
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t n_bytes = character_bytes(text);
    if (n_bytes == 0)
      out += "\xef\xbf\xbd";
    else if (text[0] == '"' || text[0] == '\\')
      out += {'\\', text[0]};
    else if (is_control(text[0]))
      out += fmt::format("\\u{:04x}", static_cast<uint8_t>(text[0]));
    else
      out += text.substr(0, n_bytes);
    text.remove_prefix(n_bytes == 0 ? 1 : n_bytes);
  }
  return out += '"';
}

}  // namespace forebay::gguf
