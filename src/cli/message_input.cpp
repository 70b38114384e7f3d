#include "cli/message_input.h"

namespace forebay::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

}  // namespace

void MessageAssembler::clear() {
  state_ = State::kEmpty;
  text_.clear();
}

std::optional<std::string> MessageAssembler::complete() {
  was_block_ = state_ == State::kBlock;
  std::string message = std::move(text_);
  clear();
  return message;
}

std::optional<std::string> MessageAssembler::push_block(std::string_view line) {
  if (line.ends_with(kQuotes)) {
    text_ += line.substr(0, line.size() - kQuotes.size());
    // Closing quotes on a line of their own add no line.
    if (line.size() == kQuotes.size() && text_.ends_with('\n')) text_.pop_back();
    return complete();
  }
  text_ += line;
  text_ += '\n';
  return std::nullopt;
}

std::optional<std::string> MessageAssembler::push(std::string_view line) {
  if (state_ == State::kEmpty && line.starts_with(kQuotes)) {
    state_ = State::kBlock;
    line.remove_prefix(kQuotes.size());
    // Opening quotes on a line of their own neither.
    return line.empty() ? std::nullopt : push_block(line);
  }
  if (state_ == State::kBlock) return push_block(line);
  if (line.ends_with('\\')) {
    state_ = State::kContinued;
    text_ += line.substr(0, line.size() - 1);
    text_ += '\n';
    return std::nullopt;
  }
  text_ += line;
  return complete();
}

std::optional<TypedCommand> parse_command(std::string_view text) {
  if (!text.starts_with('/') || text.find('\n') != std::string_view::npos) return std::nullopt;
  const size_t space = text.find(' ');
  TypedCommand command{std::string(text.substr(1, space == std::string_view::npos ? space : space - 1)), {}};
  if (space != std::string_view::npos) {
    const size_t first = text.find_first_not_of(' ', space);
    if (first != std::string_view::npos)
      command.argument = text.substr(first, text.find_last_not_of(' ') - first + 1);
  }
  return command;
}

}  // namespace forebay::cli
