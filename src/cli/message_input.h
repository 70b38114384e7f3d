/// What was typed in a chat: messages of one or more lines, and commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace forebay::cli {

/// Joins typed lines into messages. A line that ends with a backslash goes on in the next one; a line that
/// begins with """ opens a block, which ends with a line that ends with """. Confined.
class MessageAssembler {
 public:
  /// The message, when `line` completes it.
  std::optional<std::string> push(std::string_view line);
  bool in_progress() const { return state_ != State::kEmpty; }
  /// Whether the message just returned was written as a block: then it is never a command.
  bool was_block() const { return was_block_; }
  void clear();

 private:
  enum class State { kEmpty, kContinued, kBlock };
  std::optional<std::string> complete();
  std::optional<std::string> push_block(std::string_view line);

  State state_ = State::kEmpty;
  bool was_block_ = false;
  std::string text_;
};

/// "/system Be brief." -> {"system", "Be brief."}; empty when the text is no command.
struct TypedCommand {
  std::string name;
  std::string argument;
};
std::optional<TypedCommand> parse_command(std::string_view text);

}  // namespace forebay::cli
