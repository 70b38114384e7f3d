/// Which model a file holds, for files that are only good with that model.
#pragma once

#include <cstdint>

#include "gguf/gguf.h"

namespace forebay {

/// A number that changes with whatever changes logits: the architecture's metadata, the vocabulary, every
/// tensor's name, type and shape, and some bytes of each one's data (its ends and its middle; reading all
/// would take as long as loading). Not with the file's name, its place, its shards or its chat template.
uint64_t fingerprint(const GgufFile& file);

}  // namespace forebay
