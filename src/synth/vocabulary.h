/// A byte-level BPE vocabulary of a model's real size, made rather than trained: every text can be written in
/// it, words fall into pieces of a few letters, and control tokens have their published ids.
#pragma once

#include <cstdint>

#include "forebay/result.h"

#include "convert/checkpoint_config.h"
#include "tokenizer/tokenizer.h"

namespace forebay::synth {

/// Of `n_vocab` tokens, the control tokens of the family included; with the published number, ids are as
/// published. Errors: kInvalidArgument when the bytes and control tokens do not fit.
Result<Vocabulary> make_vocabulary(convert::Family family, uint64_t n_vocab);

/// What ends a document; n-grams do not reach across it.
constexpr std::string_view kDocumentEnd = "<|endoftext|>";

}  // namespace forebay::synth
