/// GGUF keys of a converted model, tokenizer.* aside.
#pragma once

#include "convert/checkpoint_config.h"
#include "convert/ngram_hash.h"
#include "gguf/gguf.h"

namespace forebay::convert {

/// Which blocks a file counts.
enum class HeadBlock {
  kAbsent,    // the trunk alone
  kIncluded,  // trunk and draft head
  kAlone,     // the draft head, with the numbers of the whole model
};

/// general.architecture and the architecture's own keys.
GgufMetadata model_metadata(const CheckpointConfig& config, const NgramHash& hash, HeadBlock head);

}  // namespace forebay::convert
