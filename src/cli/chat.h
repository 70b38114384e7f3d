/// The conversation on a terminal.
#pragma once

#include <optional>
#include <string>

#include "forebay/engine.h"

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/line_editor.h"
#include "cli/message_input.h"

namespace forebay::cli {

/// Confined. One session; every turn passes the whole conversation, and what the session holds is kept.
class Chat {
 public:
  Chat(Engine& engine, GenerateOptions options, Conversation conversation, AnswerStyle style, bool quiet);

  /// Until /quit, Ctrl-D, or Ctrl-C twice. Errors: those without which no turn could work (no template, no
  /// memory for the state); others are shown and the chat goes on.
  Result<ExitCode> run();

 private:
  Result<void> take_turn(Session& session, std::string text);
  /// Nothing, or how the chat ends.
  std::optional<ExitCode> obey(Session& session, const TypedCommand& command);
  Result<void> change_thinking(const std::string& argument);
  Result<void> save(const std::string& file) const;
  Result<void> load(const std::string& file);
  void say(std::string_view text) const;

  Engine& engine_;
  GenerateOptions options_;
  Conversation conversation_;
  const AnswerStyle style_;
  const bool quiet_;
  bool interrupted_ = false;  // the last thing that happened was Ctrl-C
};

}  // namespace forebay::cli
