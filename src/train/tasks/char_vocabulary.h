/// The vocabulary of toy models: one token per character, and two that are no characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"

namespace forebay::train {

/// Id 0 ends an answer (and pads), id 1 begins a prompt; then the characters. Immutable, thread-safe.
class CharVocabulary {
 public:
  static constexpr int32_t kEnd = 0;
  static constexpr int32_t kBegin = 1;

  /// `alphabet` has every character (a byte below 128) once.
  explicit CharVocabulary(std::string_view alphabet);
  int64_t n_tokens() const { return static_cast<int64_t>(alphabet_.size()) + 2; }

  /// Errors: kInvalidArgument naming a character that is not in the alphabet.
  Result<std::vector<int32_t>> encode(std::string_view text) const;

  /// tokenizer.ggml.*: what makes the engine read and write the same ids.
  std::vector<std::pair<std::string, GgufValue>> gguf_metadata() const;

 private:
  std::string alphabet_;
};

}  // namespace forebay::train
