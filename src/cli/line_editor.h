/// Reads lines from the terminal on standard input, with editing and recall of earlier ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/edit_buffer.h"

namespace forebay::cli {

/// Keys: arrows, Home, End, Delete, Alt-B/F; Ctrl-A E B F P N (move), Ctrl-H D K U W (erase), Ctrl-L (clear
/// the screen), Ctrl-Z (suspend). A paste may contain line ends. On a terminal that understands no escapes,
/// lines are read plainly.
///
/// Confined, one at a time: it owns SIGINT and SIGTERM while it lives, except while an Interrupt does.
class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;

  enum class End {
    kLine,         // Return
    kEndOfInput,   // Ctrl-D on an empty line, or the terminal is gone
    kInterrupted,  // Ctrl-C
    kTerminated,   // SIGTERM
  };
  struct Line {
    End end;
    std::string text;
  };
  /// A SIGINT that came before the call is forgotten.
  Line read(std::string_view prompt);

  /// Makes `line` the latest that Up recalls.
  void remember(std::string line);

 private:
  class RawMode;

  Line read_plain(std::string_view prompt);
  int next_byte();  // or a negative mark
  bool input_waits() const;
  void apply_key(int byte);
  void apply_escape();
  void insert_character(int lead);
  void paste();
  void recall(int step);
  void draw(std::string_view prompt);
  void write(std::string_view text) const;

  const int out_;  // where typed text is shown
  EditBuffer buffer_;
  std::vector<std::string> history_;
  size_t recalled_ = 0;          // index into history_; its size: the new line
  std::string unsent_;           // the new line while an old one is shown
  size_t drawn_cursor_row_ = 0;  // where draw() left the cursor, counted from the prompt's row
};

}  // namespace forebay::cli
