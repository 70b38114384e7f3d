/// Tokenizer, chat template and sampling defaults of a checkpoint as GGUF keys.
#pragma once

#include <string>
#include <vector>

#include "convert/checkpoint_config.h"
#include "core/storage.h"
#include "gguf/gguf.h"

namespace forebay::convert {

/// Adds general.sampling.* (generation_config.json), tokenizer.ggml.* (tokenizer.json and who says what ends
/// a text) and tokenizer.chat_template. Files that are not there are noted and their keys left out. Errors:
/// those of reading the files; a tokenizer that the engine could not load.
Result<void> add_text_metadata(Storage& storage, const Path& directory, const CheckpointConfig& config,
                               GgufMetadata& metadata, std::vector<std::string>& notes);

}  // namespace forebay::convert
