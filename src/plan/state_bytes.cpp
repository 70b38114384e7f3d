#include "plan/state_bytes.h"

#include "model/state.h"

namespace forebay {

StateBytes state_bytes(const ModelConfig& config, int64_t context, bool with_draft) {
  const StateSize size = state_size(config, with_draft);
  const auto cells = static_cast<uint64_t>(context);
  StateBytes bytes{size.fixed_bytes, size.bytes_per_cell * cells};
  // state_size spreads a pooled key over its block's cells; a block that is not complete has none.
  const uint64_t key_bytes = static_cast<uint64_t>(config.indexer.head_dim) * sizeof(float);
  for (const int block_cells : config.block_cells)
    if (block_cells != 0)
      bytes.rows -=
          cells % static_cast<uint64_t>(block_cells) * key_bytes / static_cast<uint64_t>(block_cells);
  return bytes;
}

}  // namespace forebay
