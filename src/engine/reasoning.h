/// Splits a model's answer into reasoning and content while it streams.
#pragma once

#include <string>
#include <string_view>

namespace forebay {

/// Text between <think> and </think> is reasoning; one run of newlines after </think> belongs to neither.
/// Confined.
class ReasoningSplitter {
 public:
  /// `inside`: the prompt already opened <think>, so the answer starts in reasoning.
  explicit ReasoningSplitter(bool inside) : inside_(inside) {}

  struct Piece {
    std::string reasoning;
    std::string content;
  };
  /// What became certain with this text; a possible start of a tag is held back.
  Piece push(std::string_view text);
  /// The rest, as what it would have been.
  Piece finish();
  bool inside() const { return inside_; }

 private:
  void emit(std::string_view text, Piece& piece);

  bool inside_;
  bool skip_newlines_ = false;
  bool tag_allowed_ = true;  // only an answer's own first <think> opens reasoning
  std::string held_;
};

/// Whether a rendered prompt leaves a <think> open at its end.
bool ends_inside_thinking(std::string_view prompt);

}  // namespace forebay
