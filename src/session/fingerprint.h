/// Which model a state belongs to.
#pragma once

#include <string>

#include "gguf/gguf.h"

namespace forebay {

/// 16 hex digits over the tensor table (names, types, shapes, places) and the first bytes of every tensor.
/// Reads a page of each from a file that is not in memory.
std::string model_fingerprint(const GgufFile& file);

}  // namespace forebay
