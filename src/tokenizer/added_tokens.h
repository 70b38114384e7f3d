/// Finds the literal tokens of a vocabulary ("<|im_end|>", "<think>") in text.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace forebay {

/// Immutable after creation. Thread-safe.
class AddedTokens {
 public:
  struct Token {
    std::string text;  // not empty; no two are equal
    TokenId id;
  };
  explicit AddedTokens(std::vector<Token> tokens);

  struct Match {
    size_t offset;
    size_t n_bytes;
    TokenId id;
  };
  /// The leftmost match at or after `from`, and of those that begin there the longest.
  std::optional<Match> find(std::string_view text, size_t from) const;

  std::optional<TokenId> id_of(std::string_view text) const;

 private:
  std::optional<Match> longest_at(std::string_view text, size_t offset) const;

  std::vector<Token> tokens_;  // sorted by text, so that a prefix comes before what it begins
  // Per first byte, the range of tokens_ that have it.
  struct Range {
    size_t begin = 0, end = 0;
  };
  std::array<Range, 256> by_first_byte_{};
};

}  // namespace forebay
