/// A chat as the templates and the saved files have it: a JSON object with "messages".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "forebay/result.h"

namespace forebay::cli {

/// Confined. What a loaded file has besides text messages (tools, tool calls) is kept.
class Conversation {
 public:
  Conversation();
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  /// Errors: kCorrupt with the parser's position, or naming what a conversation must have.
  static Result<Conversation> parse(std::string_view json);

  /// The first message; empty text removes it.
  void set_system(std::string_view text);
  std::string system() const;
  void set_thinking(std::optional<bool> on);  // empty: the template decides
  std::optional<bool> thinking() const;

  void add_user(std::string_view text);
  void add_assistant(std::string_view content, std::string_view reasoning);
  void drop_last();
  /// Forgets everything but the system message.
  void clear();
  /// Without the system message.
  size_t n_messages() const;

  /// For Engine::render_chat: an answer follows.
  std::string prompt_json() const;
  /// For a file, indented: `forebay template` reads it too.
  std::string file_json() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay::cli
