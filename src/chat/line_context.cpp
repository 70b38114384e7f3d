#include "chat/line_context.h"

namespace forebay {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

}  // namespace

void LineContext::end_line() {
  const bool fence_line = (first_ == '`' || first_ == '~') && first_run_ >= 3 && indent_ < 4;
  if (fence_line && fence_ == 0) {
    fence_ = first_;
    fence_length_ = first_run_;
  } else if (fence_line && first_ == fence_ && first_run_ >= fence_length_ && !after_first_run_) {
    fence_ = 0;
  }
  blank_ = true;
  indent_ = first_run_ = run_ = code_ = 0;
  first_ = 0;
  in_first_run_ = after_first_run_ = false;
}

void LineContext::push(char c) {
  if (c == '\n') return end_line();
  if (c == '`') {
    ++run_;
  } else if (run_ > 0) {
    if (code_ == 0)
      code_ = run_;
    else if (code_ == run_)
      code_ = 0;
    run_ = 0;
  }
  if (blank_) {
    if (is_space(c)) {
      ++indent_;
      return;
    }
    blank_ = false;
    first_ = c;
    first_run_ = 1;
    in_first_run_ = true;
  } else if (in_first_run_ && c == first_) {
    ++first_run_;
  } else {
    in_first_run_ = false;
    if (!is_space(c)) after_first_run_ = true;
  }
}

bool LineContext::quoted() const {
  if (fence_ != 0 || first_ == '>') return true;
  if ((first_ == '`' || first_ == '~') && first_run_ >= 3) return true;  // on the line that opens a fence
  // A run of backticks that ends here opens or closes as well.
  return run_ > 0 ? code_ != run_ : code_ > 0;
}

}  // namespace forebay
