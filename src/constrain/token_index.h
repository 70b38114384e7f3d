/// A vocabulary's tokens by their bytes, for walking along with an automaton.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace forebay {

/// The trie of all tokens that are text. Control and user-defined tokens are not in it: a grammar names them.
/// Takes a while to build for a large vocabulary; share it. Immutable, thread-safe.
class TokenIndex {
 public:
  explicit TokenIndex(const Tokenizer& tokenizer);

  /// In depth-first order.
  struct Node {
    uint8_t byte;
    uint16_t depth;      // 1 for the first byte
    uint32_t skip;       // the node after this one's subtree
    uint32_t token_end;  // its tokens are tokens()[of the node before, token_end)
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  int max_depth() const { return max_depth_; }
  int n_tokens() const { return n_tokens_; }
  std::span<const TokenId> stop_ids() const { return stop_ids_; }
  bool is_text(TokenId id) const { return is_text_[id]; }
  bool is_stop(TokenId id) const;

 private:
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;
  std::vector<TokenId> stop_ids_;
  std::vector<bool> is_text_;
  int max_depth_ = 0;
  int n_tokens_ = 0;
};

}  // namespace forebay
