/// A grammar as a constraint on tokens.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "constrain/automaton.h"
#include "constrain/token_constraint.h"
#include "constrain/token_index.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// Masks are computed by walking the trie of tokens beside the automaton and kept per state. Confined.
class GrammarConstraint : public TokenConstraint {
 public:
  /// Grammar finished. The tokenizer outlives the constraint.
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenIndex> index,
                    const Tokenizer& tokenizer);

  void mask(std::span<float> logits) override;
  Result<void> accept(int32_t token) override;
  bool complete() const override { return automaton_.accepting(state_); }
  void set_tokens_left(int64_t n_tokens) override { tokens_left_ = n_tokens; }
  int64_t min_tokens_left() const override { return automaton_.distance(state_); }

  /// Bytes that were chosen by other means. False, and nothing changes, when they do not fit.
  bool accept_bytes(std::string_view bytes);

 private:
  struct Mask {
    std::vector<uint64_t> allowed;  // one bit per token
    int64_t max_distance = 0;       // after any of them
  };
  const Mask& mask_of(StateId state);
  /// Tokens after which at most `max_distance` bytes are needed.
  Mask compute(StateId state, int64_t max_distance);
  void move_to(StateId state);

  std::shared_ptr<const TokenIndex> index_;
  const Tokenizer& tokenizer_;
  Automaton automaton_;
  StateId state_;
  int64_t tokens_left_ = -1;
  std::unordered_map<StateId, Mask> masks_;
  std::vector<StateId> path_;  // states along the trie
};

}  // namespace forebay
