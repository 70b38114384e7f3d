/// Whether a place in running text is a quotation: inside a code fence, inline code or a block quote.
#pragma once

namespace forebay {

/// Fed with everything before the place, byte by byte. Confined.
class LineContext {
 public:
  void push(char c);
  /// Only white space since the last line end.
  bool at_line_start() const { return blank_; }
  bool quoted() const;

 private:
  void end_line();

  // Of the fence that is open, if any.
  char fence_ = 0;
  int fence_length_ = 0;

  // Of the line.
  bool blank_ = true;
  int indent_ = 0;
  char first_ = 0;     // the first byte that is not white space
  int first_run_ = 0;  // how often it is repeated
  bool in_first_run_ = false;
  bool after_first_run_ = false;  // something other than white space followed it
  int run_ = 0;                   // of backticks, up to here
  int code_ = 0;                  // length of the run that opened inline code; 0: none is open
};

}  // namespace forebay
