/// Tokenizer, chat template and sampling defaults of a synthetic model as GGUF keys.
#pragma once

#include "gguf/gguf.h"
#include "tokenizer/tokenizer.h"

namespace forebay::synth {

void add_text_metadata(Vocabulary vocabulary, GgufMetadata& metadata);

}  // namespace forebay::synth
