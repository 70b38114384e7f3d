#include "plan/state_bytes.h"

#include "model/state.h"

namespace forebay {

StateBytes state_bytes(const ModelConfig& config, int64_t context, bool with_draft, KvType kv) {
  return {state_size(config, with_draft, kv).fixed_bytes, state_row_bytes(config, context, with_draft, kv)};
}

}  // namespace forebay
