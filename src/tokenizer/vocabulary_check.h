/// What must hold for a vocabulary before a tokenizer is built on it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "tokenizer/bpe.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// A token's text for an error message: in quotes, on one line, at most about 40 bytes.
std::string quote_text(std::string_view text);

/// What BPE needs of a vocabulary in which everything holds.
struct CheckedVocabulary {
  std::vector<Merge> merges;
  std::array<TokenId, 256> byte_tokens;  // Bpe::kNoToken where the vocabulary lacks the byte
};

/// Checks token kinds, texts (empty or repeated), bos, eos and pad, and that merges join tokens into tokens.
/// Unused tokens do not take part. Errors: kCorrupt naming the token or the merge.
Result<CheckedVocabulary> check_vocabulary(const Vocabulary& vocabulary);

}  // namespace forebay
