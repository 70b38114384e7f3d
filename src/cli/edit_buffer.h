/// The line that is being typed, apart from any terminal: text, cursor, and where both are on the screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forebay::cli {

/// Confined. UTF-8; the cursor stands between characters.
class EditBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // in bytes

  /// Replaces everything; the cursor goes to the end.
  void set(std::string text);
  void insert(std::string_view text);

  void move_left();
  void move_right();
  void move_word_left();
  void move_word_right();
  void move_to_start() { cursor_ = 0; }
  void move_to_end() { cursor_ = text_.size(); }

  void erase_before();  // the character left of the cursor
  void erase_after();
  void erase_word_before();
  void erase_to_start();
  void erase_to_end() { text_.erase(cursor_); }

 private:
  size_t before(size_t at) const;
  size_t after(size_t at) const;
  size_t word_before() const;

  std::string text_;
  size_t cursor_ = 0;
};

/// A line end inside the line (from a paste) shows as a sign, a tab as a space.
std::string displayed(std::string_view text);

/// Where the next character would stand after `text` was written from the first column of a screen of
/// `n_columns`. Wide characters do not straddle its edge.
struct ScreenPosition {
  size_t row = 0;
  size_t column = 0;
  bool operator==(const ScreenPosition&) const = default;
};
ScreenPosition position_after(std::string_view text, size_t n_columns);

}  // namespace forebay::cli
