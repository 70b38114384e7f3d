#include "tokenizer/jinja/wrap.h"

#include <algorithm>

namespace forebay::jinja {

namespace {

using Characters = std::u32string_view;

bool is_breaking_space(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_word_or_punctuation(char32_t c) {
  return is_word(c) ||
         (c < 0x80 && std::string_view("!\"'&.,?").find(static_cast<char>(c)) != std::string_view::npos);
}

bool is_letter(char32_t c) {
  return is_word(c) && !is_decimal(c);
}

/// Cuts text where a line may end: white space, words, the parts of hyphenated words, dashes between words.
class Chunker {
 public:
  Chunker(Characters text, bool on_hyphens) : text_(text), on_hyphens_(on_hyphens) {}

  std::vector<Characters> run() {
    std::vector<Characters> chunks;
    while (at_ < text_.size()) {
      const size_t end = chunk_end();
      chunks.push_back(text_.substr(at_, end - at_));
      at_ = end;
    }
    return chunks;
  }

 private:
  template <typename F>
  bool is(size_t i, F property) const {
    return i < text_.size() && property(text_[i]);
  }

  bool is_char(size_t i, char32_t c) const { return i < text_.size() && text_[i] == c; }

  size_t end_of_run(size_t from, bool of_spaces) const {
    while (from < text_.size() && is_breaking_space(text_[from]) == of_spaces) ++from;
    return from;
  }

  size_t chunk_end() const {
    if (is_breaking_space(text_[at_])) return end_of_run(at_, true);
    if (!on_hyphens_) return end_of_run(at_, false);
    if (const size_t end = end_of_dashes(at_); end != 0) return end;
    for (size_t end = at_ + 1;; ++end) {
      if (splits_after_hyphen(end)) return end + 1;
      if (end == text_.size() || is_breaking_space(text_[end]) || end_of_dashes(end) != 0) return end;
    }
  }

  /// Behind the two or more dashes at `from`, when they stand between words; else 0.
  size_t end_of_dashes(size_t from) const {
    if (from == 0 || !is_word_or_punctuation(text_[from - 1])) return 0;
    size_t end = from;
    while (is_char(end, '-')) ++end;
    return end - from >= 2 && is(end, is_word) ? end : 0;
  }

  /// The hyphen at `at` has letters around it, as in well-known or e-mail-like.
  bool splits_after_hyphen(size_t at) const {
    if (!is_char(at, '-')) return false;
    const bool two_letters = at >= 2 && is_letter(text_[at - 2]) && is_letter(text_[at - 1]);
    const bool one_part =
        at >= 3 && is_letter(text_[at - 3]) && text_[at - 2] == '-' && is_word_or_punctuation(text_[at - 1]);
    if (!two_letters && !one_part) return false;
    const size_t second = is_char(at + 2, '-') ? at + 3 : at + 2;
    return is(at + 1, is_letter) && is(second, is_letter);
  }

  const Characters text_;
  const bool on_hyphens_;
  size_t at_ = 0;
};

std::u32string decoded(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    out += c.value;
    at = c.end;
  }
  return out;
}

bool is_blank(Characters chunk) {
  return std::all_of(chunk.begin(), chunk.end(), [](char32_t c) { return is_space(c); });
}

/// How much of a word longer than a line goes into the `space_left` of this one.
size_t cut_of_long_word(Characters word, size_t space_left, bool on_hyphens) {
  if (!on_hyphens || word.size() <= space_left || space_left == 0) return space_left;
  const size_t hyphen = word.rfind('-', space_left - 1);
  if (hyphen == Characters::npos || hyphen == 0) return space_left;
  const bool all_hyphens = std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(hyphen),
                                       [](char32_t c) { return c == '-'; });
  return all_hyphens ? space_left : hyphen + 1;
}

}  // namespace

std::vector<std::string> wrapped(Runtime& runtime, std::string_view text, const WrapStyle& style) {
  if (style.width <= 0) fail("invalid width {} (must be > 0)", style.width);
  runtime.spend(text.size() / 4);
  const auto width = static_cast<size_t>(style.width);
  const std::u32string characters = decoded(text);
  std::vector<Characters> chunks = Chunker(characters, style.break_on_hyphens).run();
  std::reverse(chunks.begin(), chunks.end());
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    runtime.spend();
    std::vector<Characters> line;
    size_t length = 0;
    if (!lines.empty() && is_blank(chunks.back())) chunks.pop_back();
    while (!chunks.empty() && length + chunks.back().size() <= width) {
      length += chunks.back().size();
      line.push_back(chunks.back());
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > width) {
      if (style.break_long_words) {
        const size_t cut = cut_of_long_word(chunks.back(), width - length, style.break_on_hyphens);
        line.push_back(chunks.back().substr(0, cut));
        chunks.back().remove_prefix(cut);
      } else if (line.empty()) {
        line.push_back(chunks.back());
        chunks.pop_back();
      }
    }
    if (!line.empty() && is_blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::string joined;
    for (const Characters chunk : line)
      for (const char32_t c : chunk) append_code_point(joined, c);
    lines.push_back(std::move(joined));
  }
  return lines;
}

}  // namespace forebay::jinja
