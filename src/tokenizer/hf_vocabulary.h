/// Reads the tokenizer.json that checkpoints carry.
#pragma once

#include <string>
#include <string_view>

#include "forebay/result.h"

#include "tokenizer/tokenizer.h"

namespace forebay {

struct HfVocabularyOptions {
  /// The value for tokenizer.ggml.pre; empty: found by the file's pre-tokenizer patterns.
  std::string pre = "";
  /// Rows of the model's embedding: missing ids become unused tokens "[PAD<id>]". 0: up to the last token.
  int n_vocab = 0;
};

/// Special added tokens become control tokens, other added tokens user-defined. bos, eos and pad are not in
/// this file and stay empty. The result has not been checked as Tokenizer::create() does. Errors: kCorrupt
/// for what is not a tokenizer.json, kUnsupported for one whose model, normalizer, pre-tokenizer or
/// added-token options Tokenizer does not know, kInvalidArgument when n_vocab is less than the tokens need.
Result<Vocabulary> vocabulary_from_hf_json(std::string_view tokenizer_json,
                                           const HfVocabularyOptions& options = {});

}  // namespace forebay
