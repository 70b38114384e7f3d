#include "cli/edit_buffer.h"

#include <algorithm>
#include <clocale>
#include <cwchar>

#include <locale.h>

namespace forebay::cli {
namespace {

bool is_continuation(char c) {
  return (c & 0xc0) == 0x80;
}

/// The code point at the start of `text`, and how many bytes it takes. Malformed bytes count one by one.
std::pair<char32_t, size_t> decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t n = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (n > text.size()) return {0xfffd, 1};
  char32_t code = n == 1 ? lead : lead & (0x7f >> n);
  for (size_t i = 1; i < n; ++i) {
    if (!is_continuation(text[i])) return {0xfffd, 1};
    code = code << 6 | (text[i] & 0x3f);
  }
  return {code, n};
}

/// Columns of a character: 0, 1 or 2.
size_t width_of(char32_t code) {
  // wcwidth knows widths in a UTF-8 locale only, and the user's may be another.
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = utf8 == nullptr ? nullptr : ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(code));
  if (before != nullptr) ::uselocale(before);
  return width < 0 ? 1 : static_cast<size_t>(width);
}

}  // namespace

void EditBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

size_t EditBuffer::before(size_t at) const {
  if (at == 0) return 0;
  --at;
  while (at > 0 && is_continuation(text_[at])) --at;
  return at;
}

size_t EditBuffer::after(size_t at) const {
  if (at == text_.size()) return at;
  ++at;
  while (at < text_.size() && is_continuation(text_[at])) ++at;
  return at;
}

size_t EditBuffer::word_before() const {
  size_t at = cursor_;
  while (at > 0 && text_[at - 1] == ' ') --at;
  while (at > 0 && text_[at - 1] != ' ') --at;
  return at;
}

void EditBuffer::move_left() {
  cursor_ = before(cursor_);
}
void EditBuffer::move_right() {
  cursor_ = after(cursor_);
}
void EditBuffer::move_word_left() {
  cursor_ = word_before();
}
void EditBuffer::move_word_right() {
  while (cursor_ < text_.size() && text_[cursor_] == ' ') ++cursor_;
  while (cursor_ < text_.size() && text_[cursor_] != ' ') ++cursor_;
}

void EditBuffer::erase_before() {
  const size_t from = before(cursor_);
  text_.erase(from, cursor_ - from);
  cursor_ = from;
}
void EditBuffer::erase_after() {
  text_.erase(cursor_, after(cursor_) - cursor_);
}
void EditBuffer::erase_word_before() {
  const size_t from = word_before();
  text_.erase(from, cursor_ - from);
  cursor_ = from;
}
void EditBuffer::erase_to_start() {
  text_.erase(0, cursor_);
  cursor_ = 0;
}

std::string displayed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\u21b5";  // downwards arrow with corner leftwards
    else if (c == '\t')
      out += ' ';
    else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)
      out += c;
  }
  return out;
}

ScreenPosition position_after(std::string_view text, size_t n_columns) {
  ScreenPosition at;
  while (!text.empty()) {
    const auto [code, n_bytes] = decode(text);
    text.remove_prefix(n_bytes);
    const size_t width = std::min(width_of(code), n_columns);
    if (at.column + width > n_columns) at = {at.row + 1, 0};
    at.column += width;
  }
  if (at.column == n_columns) at = {at.row + 1, 0};
  return at;
}

}  // namespace forebay::cli
