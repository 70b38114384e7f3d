/// Remembers answers with tool calls to the byte. A client that sends a call back writes it its own way (key
/// order, white space, types); the model gets to read what it wrote, and the prompt stays a continuation of
/// the state.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "chat/output_parser.h"

namespace forebay {

/// Bounded in bytes: the answers that were used longest ago go first. Thread-safe.
class ToolMemory {
 public:
  explicit ToolMemory(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Keeps an answer that has calls; answers whose calls stood in their reasoning cannot be given back.
  void remember(const ParsedAnswer& answer);

  /// `messages`: a conversation in OpenAI's form. In every assistant message whose calls are remembered, with
  /// the same ids, names, arguments (as JSON values) and content (but for white space around it), `content`
  /// becomes the model's own text with the calls in it, `tool_calls` goes, and `reasoning_content` comes back
  /// where it is missing. Other messages stay. Returns the indices of those that changed: their content has
  /// tags that are the model's own.
  std::vector<size_t> restore(nlohmann::ordered_json& messages);

  size_t bytes() const;
  size_t n_answers() const;

 private:
  struct Entry {
    ParsedAnswer answer;
    size_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // most recently used first

  bool restore_one(nlohmann::ordered_json& message);
  void forget(Entries::iterator entry);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::map<std::string, Entries::iterator, std::less<>> by_id_;  // of an answer's first call
  size_t bytes_ = 0;
};

}  // namespace forebay
