/// The tokens behind texts that this server has read and written. A client sends its history back as text;
/// another cut of the same text into tokens would part from the live state.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forebay {

/// Bounded in bytes and entries: what was used longest ago goes first. Thread-safe.
class TokenMemory {
 public:
  /// A prompt and its answer, as marked text (prompt_text.h) and as tokens.
  void remember(std::string text, std::vector<int32_t> ids);
  struct Known {
    size_t n_bytes = 0;  // of the text, from its beginning
    std::vector<int32_t> ids;
  };
  /// The longest remembered text that `text` begins with.
  std::optional<Known> find(std::string_view text);

 private:
  struct Entry {
    std::string text;
    std::vector<int32_t> ids;
    size_t bytes() const { return text.size() + ids.size() * sizeof(int32_t); }
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // newest first; guarded by mutex_, as is what follows
  size_t bytes_ = 0;
};

}  // namespace forebay
