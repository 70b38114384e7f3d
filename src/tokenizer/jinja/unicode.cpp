#include "tokenizer/jinja/unicode.h"

#include <algorithm>
#include <iterator>

#include "tokenizer/jinja/unicode_tables.h"
#include "tokenizer/utf8.h"

namespace forebay::jinja {

namespace {

template <size_t N>
bool in_set(const uint32_t (&edges)[N], uint32_t c) {
  return (std::upper_bound(std::begin(edges), std::end(edges), c) - std::begin(edges)) % 2 == 1;
}

template <size_t N>
uint32_t map_case(const CaseRun (&runs)[N], uint32_t c) {
  const auto after = std::upper_bound(std::begin(runs), std::end(runs), c,
                                      [](uint32_t value, const CaseRun& run) { return value < run.first; });
  if (after == std::begin(runs)) return c;
  const CaseRun& run = *std::prev(after);
  if (c > run.last || (c - run.first) % run.stride != 0) return c;
  return c + static_cast<uint32_t>(run.delta);
}

const LongCase* long_case(uint32_t c) {
  if (c < kLongCase[0].code_point) return nullptr;
  const auto found =
      std::lower_bound(std::begin(kLongCase), std::end(kLongCase), c,
                       [](const LongCase& entry, uint32_t value) { return entry.code_point < value; });
  return found != std::end(kLongCase) && found->code_point == c ? found : nullptr;
}

void append_all(std::string& out, const uint32_t (&code_points)[3]) {
  for (const uint32_t c : code_points)
    if (c != 0) append_code_point(out, c);
}

void append_upper(std::string& out, uint32_t c) {
  if (const LongCase* entry = long_case(c)) return append_all(out, entry->upper);
  append_code_point(out, map_case(kToUpper, c));
}

void append_title(std::string& out, uint32_t c) {
  if (const LongCase* entry = long_case(c)) return append_all(out, entry->title);
  const uint32_t title = map_case(kToTitle, c);
  // Georgian letters keep their form in titles but have capitals, so the title map holds what differs from
  // upper.
  append_code_point(
      out, title != c || (c >= 0x10d0 && c <= 0x10ff) || is_title(c) ? title : map_case(kToUpper, c));
}

bool is_cased(uint32_t c) {
  return is_lower(c) || is_upper(c) || is_title(c);
}

// Marks and punctuation that a word goes on behind: what the final-sigma rule looks through.
bool is_case_ignorable(uint32_t c) {
  switch (c) {
    case '\'':
    case '.':
    case ':':
    case '^':
    case '`':
    case 0xa8:
    case 0xad:
    case 0xaf:
    case 0xb4:
    case 0xb7:
    case 0xb8:
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0x2027:
      return true;
  }
  return (c >= 0x2b0 && c <= 0x36f) || (c >= 0x483 && c <= 0x489) || (c >= 0x1ab0 && c <= 0x1aff) ||
         (c >= 0x1dc0 && c <= 0x1dff) || (c >= 0x200b && c <= 0x200f) || (c >= 0x20d0 && c <= 0x20ff) ||
         (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xfe20 && c <= 0xfe2f);
}

bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  bool letter_before = false;
  while (begin > 0) {
    const CodePoint c = code_point_before(text, begin);
    begin = c.end;
    if (is_case_ignorable(c.value)) continue;
    letter_before = is_cased(c.value);
    break;
  }
  if (!letter_before) return false;
  while (end < text.size()) {
    const CodePoint c = code_point_at(text, end);
    end = c.end;
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, size_t begin, const CodePoint& c) {
  if (c.value == 0x130) {
    out += "i\u0307";
  } else if (c.value == 0x3a3) {
    append_code_point(out, is_final_sigma(text, begin, c.end) ? 0x3c2 : 0x3c3);
  } else {
    append_code_point(out, map_case(kToLower, c.value));
  }
}

/// Calls f(code point with its end, its beginning) for each.
template <typename F>
void for_each_code_point(std::string_view text, F f) {
  for (size_t begin = 0; begin < text.size();) {
    const CodePoint c = code_point_at(text, begin);
    f(c, begin);
    begin = c.end;
  }
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80) return {lead, offset + 1};
  const utf8::Char c = utf8::first_char(text.substr(offset));
  return {c.status == utf8::Status::kValid ? c.code_point : 0xfffd, offset + c.n_bytes};
}

CodePoint code_point_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  return {code_point_at(text, begin).value, begin};
}

int64_t n_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

size_t byte_offset(std::string_view text, int64_t index) {
  size_t offset = 0;
  while (offset < text.size()) {
    if ((static_cast<unsigned char>(text[offset]) & 0xc0) != 0x80 && index-- == 0) return offset;
    ++offset;
  }
  return offset;
}

std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  utf8::append_replaced(out, text);
  return out;
}

void append_code_point(std::string& out, uint32_t code_point) {
  utf8::append(out, code_point);
}

bool is_space(uint32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_alphabetic(uint32_t c) {
  return in_set(kAlphabetic, c);
}
bool is_decimal(uint32_t c) {
  return in_set(kDecimal, c);
}
bool is_digit(uint32_t c) {
  return is_decimal(c) || in_set(kOtherDigit, c);
}
bool is_numeric(uint32_t c) {
  return is_digit(c) || in_set(kOtherNumeric, c);
}
bool is_alphanumeric(uint32_t c) {
  return is_alphabetic(c) || is_numeric(c);
}
bool is_word(uint32_t c) {
  return c == '_' || is_alphanumeric(c);
}
bool is_printable(uint32_t c) {
  return !in_set(kUnprintable, c);
}

bool is_lower(uint32_t c) {
  const bool has_upper = map_case(kToUpper, c) != c || long_case(c) != nullptr;
  return (has_upper && !in_set(kNotLower, c)) || in_set(kLowerWithoutPair, c);
}

bool is_upper(uint32_t c) {
  const bool has_lower = map_case(kToLower, c) != c || c == 0x130;
  return (has_lower && !in_set(kNotUpper, c)) || in_set(kUpperWithoutPair, c);
}

bool is_title(uint32_t c) {
  return c == 0x1c5 || c == 0x1c8 || c == 0x1cb || c == 0x1f2 ||
         (c >= 0x1f88 && c <= 0x1faf && c % 16 >= 8) || c == 0x1fbc || c == 0x1fcc || c == 0x1ffc;
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](const CodePoint& c, size_t) { append_upper(out, c.value); });
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](const CodePoint& c, size_t begin) { append_lower(out, text, begin, c); });
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_word = false;
  for_each_code_point(text, [&](const CodePoint& c, size_t begin) {
    if (in_word) {
      append_lower(out, text, begin, c);
    } else {
      append_title(out, c.value);
    }
    in_word = is_cased(c.value);
  });
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](const CodePoint& c, size_t begin) {
    if (begin == 0) {
      append_title(out, c.value);
    } else {
      append_lower(out, text, begin, c);
    }
  });
  return out;
}

std::string swapped_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](const CodePoint& c, size_t begin) {
    if (is_upper(c.value)) {
      append_lower(out, text, begin, c);
    } else if (is_lower(c.value)) {
      append_upper(out, c.value);
    } else {
      append_code_point(out, c.value);
    }
  });
  return out;
}

std::string folded_case(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](const CodePoint& c, size_t) {
    const bool is_cherokee =
        (c.value >= 0x13a0 && c.value <= 0x13fd) || (c.value >= 0xab70 && c.value <= 0xabbf);
    if (c.value == 0x131) return append_code_point(out, c.value);
    std::string upper;
    append_upper(upper, c.value);
    if (is_cherokee) {
      out += upper;  // Unicode folds Cherokee upwards
    } else {
      for_each_code_point(upper, [&](const CodePoint& u, size_t) {
        if (u.value == 0x130) {
          out += "i\u0307";
        } else if (u.value == 0x1e9e) {
          out += "ss";
        } else {
          append_code_point(out, map_case(kToLower, u.value));
        }
      });
    }
  });
  return out;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = code_point_at(text, 0);
    if (!is_space(c.value)) break;
    text.remove_prefix(c.end);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = code_point_before(text, text.size());
    if (!is_space(c.value)) break;
    text = text.substr(0, c.end);
  }
  return text;
}

}  // namespace forebay::jinja
