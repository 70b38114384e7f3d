#include "tokenizer/jinja/text.h"

#include <algorithm>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/search.h"

namespace forebay::jinja {

namespace {

bool is_line_end(uint32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

template <typename F>
std::string_view strip_where(std::string_view text, Side side, F remove) {
  if (side != Side::kRight) {
    while (!text.empty()) {
      const CodePoint c = code_point_at(text, 0);
      if (!remove(c.value)) break;
      text.remove_prefix(c.end);
    }
  }
  if (side != Side::kLeft) {
    while (!text.empty()) {
      const CodePoint c = code_point_before(text, text.size());
      if (!remove(c.value)) break;
      text = text.substr(0, c.end);
    }
  }
  return text;
}

}  // namespace

Value like(Runtime& runtime, const Value& model, std::string text) {
  return runtime.string(std::move(text), model.is_string() && model.as<String>().markup);
}

std::string_view stripped(std::string_view text, const Value& chars, Side side) {
  if (chars.is_absent()) return strip_where(text, side, is_space);
  if (!chars.is_string()) fail("strip arg must be None or str, not '{}'", type_name(chars));
  std::vector<uint32_t> set;
  for (size_t at = 0; at < chars.text().size();) {
    const CodePoint c = code_point_at(chars.text(), at);
    set.push_back(c.value);
    at = c.end;
  }
  std::sort(set.begin(), set.end());
  return strip_where(text, side, [&](uint32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

std::vector<std::string_view> split_spaces(std::string_view text, int64_t max_splits, Side from) {
  std::vector<std::string_view> pieces;
  const bool from_right = from == Side::kRight;
  while (true) {
    text = from_right ? strip_right(text) : strip_left(text);
    if (text.empty()) break;
    if (max_splits >= 0 && static_cast<int64_t>(pieces.size()) >= max_splits) {
      pieces.push_back(text);
      break;
    }
    size_t cut = from_right ? text.size() : 0;  // between the piece and the rest
    while (from_right ? cut > 0 : cut < text.size()) {
      const CodePoint c = from_right ? code_point_before(text, cut) : code_point_at(text, cut);
      if (is_space(c.value)) break;
      cut = c.end;
    }
    pieces.push_back(from_right ? text.substr(cut) : text.substr(0, cut));
    text = from_right ? text.substr(0, cut) : text.substr(cut);
  }
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_text(std::string_view text, std::string_view separator,
                                         int64_t max_splits, Side from) {
  std::vector<std::string_view> pieces;
  const auto more = [&] { return max_splits < 0 || static_cast<int64_t>(pieces.size()) < max_splits; };
  if (from == Side::kRight) {
    // Found from the right: "aaa" at "aa" leaves "a" on the left.
    const std::string backwards(text.rbegin(), text.rend()), wanted(separator.rbegin(), separator.rend());
    size_t end = text.size();
    for (size_t at = find_text(backwards, wanted); at != std::string::npos && more();) {
      const size_t found = text.size() - at - wanted.size();
      pieces.push_back(text.substr(found + separator.size(), end - found - separator.size()));
      end = found;
      at = find_text(backwards, wanted, at + wanted.size());
    }
    pieces.push_back(text.substr(0, end));
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }
  while (more()) {
    const size_t found = find_text(text, separator);
    if (found == std::string_view::npos) break;
    pieces.push_back(text.substr(0, found));
    text = text.substr(found + separator.size());
  }
  pieces.push_back(text);
  return pieces;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin, next = begin;
    while (true) {
      end = next;
      if (end == text.size()) break;
      const CodePoint c = code_point_at(text, end);
      next = c.end;
      if (!is_line_end(c.value)) continue;
      if (c.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      break;
    }
    lines.push_back(text.substr(begin, (keep_ends ? next : end) - begin));
    begin = next;
  }
  return lines;
}

std::string replaced_within(Runtime& runtime, std::string_view text, std::string_view old,
                            std::string_view by, int64_t max_count) {
  runtime.spend_bytes(text.size());
  if (by.size() > old.size()) {
    uint64_t n = count_text(text, old);
    if (max_count >= 0) n = std::min(n, static_cast<uint64_t>(max_count));
    runtime.check_text(by.size() - old.size(), n);
  }
  return replaced(text, old, by, max_count);
}

std::string justified(Runtime& runtime, std::string_view text, int64_t width, std::string_view fill,
                      Side side) {
  const int64_t n_pad = width - n_code_points(text);
  if (n_pad <= 0) return std::string(text);
  runtime.check_text(static_cast<uint64_t>(n_pad), fill.size());
  runtime.check_text(static_cast<uint64_t>(n_pad) * fill.size() + text.size());
  int64_t n_before = 0;
  if (side == Side::kRight) n_before = n_pad;
  // Python gives the odd one to the left when the width is odd too.
  if (side == Side::kBoth) n_before = n_pad / 2 + (n_pad & width & 1);
  std::string out;
  out.reserve(text.size() + static_cast<size_t>(n_pad) * fill.size());
  for (int64_t i = 0; i < n_before; ++i) out += fill;
  out += text;
  for (int64_t i = n_before; i < n_pad; ++i) out += fill;
  return out;
}

Value list_of(Runtime& runtime, const Value& model, const std::vector<std::string_view>& pieces) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) {
    runtime.spend();
    items.push_back(like(runtime, model, std::string(piece)));
  }
  return runtime.list(std::move(items));
}

}  // namespace forebay::jinja
