/// From a conversation to a prompt's tokens, so that control tokens in what others wrote are plain text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/engine.h"

#include "chat/chat_style.h"
#include "chat/tool_memory.h"
#include "constrain/constrain.h"
#include "server/request.h"
#include "server/token_memory.h"
#include "tokenizer/added_tokens.h"

namespace forebay {

struct Prompt {
  std::string text;  // marked: where a message spells a control token, a mark stands inside of it
  std::vector<int32_t> ids;
  bool starts_thinking = false;
};

/// Immutable but for what it remembers. Thread-safe.
class PromptMaker {
 public:
  /// The engine must outlive it.
  explicit PromptMaker(const Engine& engine);

  /// Renders and tokenises. A conversation that the template refuses because of system messages that do not
  /// stand first is tried again with all of them in front. Errors: kInvalidArgument, kUnsupported.
  Result<Prompt> chat(const ChatRequest& request);
  /// A prompt as it is. With `control`, control tokens in it count.
  Result<Prompt> plain(std::string_view text, bool control) const;
  /// The rendered text without marks.
  Result<std::string> render(const ChatRequest& request);

  const ChatStyle& style() const { return style_; }
  /// The engine has a vocabulary.
  const ConstraintVocabulary& constraints() const { return *constraints_; }
  TokenMemory& token_memory() { return token_memory_; }
  ToolMemory& tool_memory() { return tool_memory_; }
  /// A tool whose calls are one control token can be kept from the model.
  std::optional<int32_t> tool_token() const { return tool_token_; }

 private:
  Result<std::string> marked_text(const ChatRequest& request);
  Result<std::vector<int32_t>> encode(std::string_view marked) const;
  void mark(std::string& text) const;
  void mark_strings(Json& json) const;

  const Engine& engine_;
  AddedTokens control_;
  ChatStyle style_;
  std::optional<ConstraintVocabulary> constraints_;
  std::optional<int32_t> tool_token_;
  TokenMemory token_memory_;
  ToolMemory tool_memory_;
};

}  // namespace forebay
