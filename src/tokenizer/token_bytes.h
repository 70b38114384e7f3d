/// The bytes each token stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "tokenizer/tokenizer.h"

namespace forebay {

/// Immutable after creation. Thread-safe.
class TokenBytes {
 public:
  /// Errors: kCorrupt naming a normal token with a character outside the byte alphabet, or a byte token that
  /// is not of the form <0x0A>.
  static Result<TokenBytes> create(const Vocabulary& vocabulary);

  /// Literal text for control, unknown and user-defined tokens, nothing for unused ones. `id` is in range.
  std::string_view of(TokenId id) const {
    auto i = static_cast<size_t>(id);
    return std::string_view(bytes_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_{0};  // of token i - 1
};

}  // namespace forebay
