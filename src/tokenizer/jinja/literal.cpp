#include "tokenizer/jinja/literal.h"

#include <algorithm>
#include <cstdlib>

#include "tokenizer/jinja/failure.h"

namespace forebay::jinja {

namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

/// Digits from `at`, each after the first perhaps behind one underscore; `leading` allows one before the
/// first too.
size_t skip_digits(std::string_view text, size_t at, int base, bool leading = false) {
  bool any = leading;
  while (at < text.size()) {
    const size_t digit = any && text[at] == '_' ? at + 1 : at;
    if (digit >= text.size() || digit_value(text[digit]) >= base) break;
    at = digit + 1;
    any = true;
  }
  return at;
}

int base_of_prefix(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  switch (text[1]) {
    case 'b':
    case 'B':
      return 2;
    case 'o':
    case 'O':
      return 8;
    case 'x':
    case 'X':
      return 16;
    default:
      return 10;
  }
}

std::string without_separators(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

/// Reads exactly `n` hexadecimal digits.
uint32_t hex(std::string_view text, size_t at, size_t n) {
  if (at + n > text.size()) fail("truncated escape in a string");
  uint32_t value = 0;
  for (size_t i = at; i < at + n; ++i) {
    const int digit = digit_value(text[i]);
    if (digit >= 16) fail("'{}' is not a hexadecimal digit in a string's escape", text[i]);
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

void append_checked(std::string& out, uint32_t code_point) {
  if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point < 0xe000))
    fail("the escape of {:#x} in a string is no character", code_point);
  append_code_point(out, code_point);
}

}  // namespace

size_t float_literal_size(std::string_view text) {
  const size_t whole = skip_digits(text, 0, 10);
  size_t end = whole;
  if (whole + 1 < text.size() && text[whole] == '.') {
    const size_t fraction = skip_digits(text, whole + 1, 10);
    if (fraction != whole + 1) end = fraction;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const size_t exponent = skip_digits(text, digits, 10);
    if (exponent != digits) end = exponent;
  }
  return end == whole ? 0 : end;
}

size_t integer_literal_size(std::string_view text) {
  if (const int base = base_of_prefix(text); base != 10) {
    const size_t end = skip_digits(text, 2, base, true);
    if (end > 2) return end;
  }
  // No leading zeros, but as many zeros as you like.
  return text[0] == '0' ? skip_digits(text, 0, 1) : skip_digits(text, 0, 10);
}

double float_literal(std::string_view text) {
  return std::strtod(without_separators(text).c_str(), nullptr);
}

std::optional<Int> integer_literal(std::string_view text) {
  const int base = base_of_prefix(text);
  return parse_digits(base == 10 ? text : text.substr(text[2] == '_' ? 3 : 2), base);
}

std::optional<Int> parse_digits(std::string_view text, int base) {
  if (text.empty() || text[0] == '_' || skip_digits(text, 0, base) != text.size()) return std::nullopt;
  unsigned __int128 value = 0;
  constexpr auto kMax = ~static_cast<unsigned __int128>(0) >> 1;
  for (const char c : text) {
    if (c == '_') continue;
    const auto digit = static_cast<unsigned>(digit_value(c));
    if (value > (kMax - digit) / static_cast<unsigned>(base)) return std::nullopt;
    value = value * static_cast<unsigned>(base) + digit;
  }
  return static_cast<Int>(value);
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    if (++at == text.size()) fail("a string ends in a backslash");
    switch (const char c = text[at]) {
      case '\n':
        break;
      case '\\':
      case '\'':
      case '"':
        out += c;
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case 'x':
        append_checked(out, hex(text, at + 1, 2));
        at += 2;
        break;
      case 'u':
        append_checked(out, hex(text, at + 1, 4));
        at += 4;
        break;
      case 'U':
        append_checked(out, hex(text, at + 1, 8));
        at += 8;
        break;
      case 'N':
        fail("\\N{{name}} escapes are not supported");
      default:
        if (c >= '0' && c <= '7') {
          uint32_t value = 0;
          size_t end = at;
          while (end < text.size() && end < at + 3 && text[end] >= '0' && text[end] <= '7')
            value = value * 8 + static_cast<uint32_t>(text[end++] - '0');
          append_checked(out, value);
          at = end - 1;
          break;
        }
        // Not an escape: the backslash stays. Jinja spells characters beyond ASCII as escapes first, whose
        // own backslash is then taken by the one before: the spelling stays.
        out += '\\';
        if (static_cast<unsigned char>(c) < 0x80) {
          out += c;
          break;
        }
        const CodePoint wide = code_point_at(text, at);
        out += wide.value < 0x100     ? fmt::format("x{:02x}", wide.value)
               : wide.value < 0x10000 ? fmt::format("u{:04x}", wide.value)
                                      : fmt::format("U{:08x}", wide.value);
        at = wide.end - 1;
    }
  }
  return out;
}

}  // namespace forebay::jinja
