/// Sizes for small models, in one line.
#pragma once

#include "model/config.h"

namespace forebay::train {

struct DenseSizes {
  int n_vocab = 64, d_model = 64, n_blocks = 4, n_heads = 4, n_kv_heads = 2, head_dim = 16, d_ffn = 192;
  int64_t context = 256;
  bool qk_norm = true;  // qwen3; else qwen2
  bool tied_embeddings = false;
};
ModelConfig dense_config(const DenseSizes& sizes);

}  // namespace forebay::train
