/// What one sequence takes, to the byte: what SequenceState::create will reserve.
#pragma once

#include <cstdint>

#include "forebay/kv.h"

#include "model/config.h"

namespace forebay {

struct StateBytes {
  uint64_t fixed = 0;  // recurrent matrices, convolution tails, raw index keys
  uint64_t rows = 0;   // K/V rows and pooled index keys of `context` cells

  uint64_t sum() const { return fixed + rows; }
};

StateBytes state_bytes(const ModelConfig& config, int64_t context, bool with_draft, KvType kv);

}  // namespace forebay
