/// What an answer must look like, as a mask over the next token.
#pragma once

#include <cstdint>
#include <span>

#include "forebay/result.h"

namespace forebay {

/// Follows one answer. Confined.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// Sets the logits of tokens that may not come next to minus infinity. Stop tokens stay when the text is
  /// complete.
  virtual void mask(std::span<float> logits) = 0;
  /// The token that was chosen. Errors: kInvalidArgument for one that mask() excludes; nothing changes then.
  virtual Result<void> accept(int32_t token) = 0;
  /// What was accepted is a whole text.
  virtual bool complete() const = 0;
  /// How many tokens the answer may still have, the next one included, before mask() is asked: it then leaves
  /// only tokens after which there is still room for an end. Negative (the start): no limit.
  virtual void set_tokens_left(int64_t n_tokens) = 0;
  /// Fewest tokens to a complete text, stop token not counted, if each byte were a token.
  virtual int64_t min_tokens_left() const = 0;
};

}  // namespace forebay
