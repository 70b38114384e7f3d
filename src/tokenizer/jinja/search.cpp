#include "tokenizer/jinja/search.h"

#include <algorithm>
#include <cstring>

#include "tokenizer/jinja/unicode.h"

namespace forebay::jinja {

size_t find_text(std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  // memmem is the two-way algorithm; std::string_view::find is quadratic at worst.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last_text(std::string_view text, std::string_view wanted) {
  constexpr size_t kShort = 32;  // quadratic in so little is linear
  if (wanted.size() <= kShort) return text.rfind(wanted);
  const std::string reversed_text(text.rbegin(), text.rend());
  const std::string reversed_wanted(wanted.rbegin(), wanted.rend());
  const size_t found = find_text(reversed_text, reversed_wanted);
  return found == std::string_view::npos ? found : text.size() - found - wanted.size();
}

size_t count_text(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return static_cast<size_t>(n_code_points(text)) + 1;
  size_t n = 0;
  for (size_t at = find_text(text, wanted); at != std::string_view::npos; at = find_text(text, wanted, at)) {
    ++n;
    at += wanted.size();
  }
  return n;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by, int64_t max_count) {
  std::string out;
  size_t from = 0;
  for (size_t at = find_text(text, old); at != std::string_view::npos && max_count != 0; --max_count) {
    out += text.substr(from, at - from);
    out += by;
    from = at + old.size();
    size_t next = from;
    if (old.empty()) {
      // Before every code point and at the end.
      if (at == text.size()) break;
      next = code_point_at(text, at).end;
    }
    at = find_text(text, old, next);
  }
  return out += text.substr(from);
}

}  // namespace forebay::jinja
