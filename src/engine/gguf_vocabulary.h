#pragma once

#include "gguf/gguf.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// The vocabulary a GGUF carries under tokenizer.ggml.*.
/// Errors: kNotFound when it has none; kUnsupported for another tokenizer model than byte-level BPE; kCorrupt
/// naming the key.
Result<Vocabulary> vocabulary_from_gguf(const GgufMetadata& metadata);

}  // namespace forebay
