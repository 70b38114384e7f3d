/// The text side of a model file, without its weights: works for models that this version does not run.
#pragma once

#include "forebay/result.h"

#include "gguf/gguf.h"
#include "tokenizer/tokenizer.h"

namespace forebay::cli {

/// Errors name the file.
Result<Tokenizer> tokenizer_of(const GgufFile& file);

/// The literal text of the token whose id is under `key`; empty when there is none.
std::string special_text(const GgufFile& file, std::string_view key);

}  // namespace forebay::cli
