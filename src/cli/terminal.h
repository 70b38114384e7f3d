/// What a person sees: which streams are terminals, and text that is safe to send to one.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace forebay::cli {

bool is_terminal(std::FILE* stream);
/// Whether the terminal understands cursor movement and colours.
bool understands_escapes();

/// Without control characters other than newline and tab: a model must not be able to move the cursor or
/// change the title of somebody's terminal.
std::string without_controls(std::string_view text);

/// Text on `stream`: dimmed and without controls if that is a terminal, as it is elsewhere.
class Writer {
 public:
  enum class Style { kPlain, kDim };
  Writer(std::FILE* stream, Style style);

  void write(std::string_view text);
  /// Ends the line if one was begun.
  void end_line();
  bool at_line_start() const { return last_ == '\n'; }
  bool wrote() const { return wrote_; }

 private:
  std::FILE* stream_;
  bool to_terminal_;
  bool dim_;
  bool wrote_ = false;
  char last_ = '\n';
};

}  // namespace forebay::cli
