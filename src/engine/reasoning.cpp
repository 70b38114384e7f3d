#include "engine/reasoning.h"

#include <algorithm>

namespace forebay {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

/// How many bytes at the end of `text` could be the beginning of `tag`.
size_t partial_tag(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (text.substr(text.size() - n) == tag.substr(0, n)) return n;
  return 0;
}

}  // namespace

void ReasoningSplitter::emit(std::string_view text, Piece& piece) {
  if (inside_) {
    piece.reasoning += text;
    return;
  }
  if (skip_newlines_) {
    const size_t first = text.find_first_not_of('\n');
    if (first == std::string_view::npos) return;
    text.remove_prefix(first);
    skip_newlines_ = false;
  }
  if (text.find_first_not_of(" \n\t\r") != std::string_view::npos) tag_allowed_ = false;
  piece.content += text;
}

ReasoningSplitter::Piece ReasoningSplitter::push(std::string_view text) {
  Piece piece;
  held_ += text;
  while (true) {
    const std::string_view tag = inside_ ? kClose : kOpen;
    if (!inside_ && !tag_allowed_) break;
    const size_t at = held_.find(tag);
    if (at == std::string::npos) break;
    const std::string before = held_.substr(0, at);
    if (!inside_ && before.find_first_not_of(" \n\t\r") != std::string::npos) break;  // quoted in prose
    emit(before, piece);
    held_.erase(0, at + tag.size());
    skip_newlines_ = inside_;
    inside_ = !inside_;
    tag_allowed_ = false;
  }
  const bool may_open = inside_ || tag_allowed_;
  const size_t keep = may_open ? partial_tag(held_, inside_ ? kClose : kOpen) : 0;
  emit(std::string_view(held_).substr(0, held_.size() - keep), piece);
  held_.erase(0, held_.size() - keep);
  return piece;
}

ReasoningSplitter::Piece ReasoningSplitter::finish() {
  Piece piece;
  emit(held_, piece);
  held_.clear();
  return piece;
}

bool ends_inside_thinking(std::string_view prompt) {
  const size_t open = prompt.rfind(kOpen);
  if (open == std::string_view::npos) return false;
  const size_t close = prompt.rfind(kClose);
  return close == std::string_view::npos || close < open;
}

}  // namespace forebay
