#include "tokenizer/utf8.h"

#include <cstring>

namespace forebay::utf8 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Lead {
  uint8_t n_bytes;  // 0: no sequence starts with this byte
  uint8_t second_min, second_max;
};

// Table 3-7 of the Unicode standard: the second byte excludes overlong forms, surrogates and values past
// U+10FFFF.
Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Char first_char(std::string_view text) {
  auto first = static_cast<uint8_t>(text[0]);
  Lead lead = lead_of(first);
  if (lead.n_bytes == 0) return {0, 1, Status::kInvalid};
  if (lead.n_bytes == 1) return {first, 1, Status::kValid};
  uint32_t code_point = first & (0x7Fu >> lead.n_bytes);
  for (uint8_t i = 1; i < lead.n_bytes; ++i) {
    if (i == text.size()) return {0, i, Status::kTruncated};
    auto byte = static_cast<uint8_t>(text[i]);
    uint8_t min = i == 1 ? lead.second_min : 0x80;
    uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {0, i, Status::kInvalid};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  return {code_point, lead.n_bytes, Status::kValid};
}

size_t valid_prefix_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time: most text is.
    uint64_t word;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof word;
        continue;
      }
    }
    Char c = first_char(text.substr(at));
    if (c.status != Status::kValid) break;
    at += c.n_bytes;
  }
  return at;
}

void append(std::string& out, uint32_t code_point) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
    return;
  }
  int n_tail = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  put((0xFF00u >> (n_tail + 1) & 0xFF) | code_point >> (6 * n_tail));
  for (int i = n_tail - 1; i >= 0; --i) put(0x80 | (code_point >> (6 * i) & 0x3F));
}

void append_replaced(std::string& out, std::string_view text) {
  while (!text.empty()) {
    size_t n_valid = valid_prefix_bytes(text);
    out.append(text.substr(0, n_valid));
    text.remove_prefix(n_valid);
    if (text.empty()) return;
    text.remove_prefix(first_char(text).n_bytes);
    out.append(kReplacement);
  }
}

}  // namespace forebay::utf8
