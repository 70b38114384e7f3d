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

struct HyperSizes {
  int n_vocab = 64, d_model = 32, n_blocks = 4, n_heads = 2, n_kv_heads = 1, head_dim = 16, n_rot = 8;
  int n_experts = 8, n_used = 2, d_expert = 16, d_shared = 16, n_streams = 4, low_rank = 8;
  int n_k_heads = 2, n_v_heads = 4, delta_dim = 8, index_heads = 2, index_dim = 8, n_mtp_blocks = 1;
  int64_t index_budget = 64, context = 256, ngram_base = 100, eos = 0;
  int ngram_block = 1, heads_per_ngram = 2;  // block -1: no n-grams
  uint64_t ngram_seed = 1234;
};
/// qwen4exp: every fourth block is attention.
ModelConfig hyper_config(const HyperSizes& sizes);

}  // namespace forebay::train
