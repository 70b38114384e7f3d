#include "train/nets/toy.h"

#include <cmath>

namespace forebay::train {

ModelConfig dense_config(const DenseSizes& sizes) {
  ModelConfig c;
  c.family = sizes.qk_norm ? Family::kQwen3 : Family::kQwen2;
  c.architecture = c.name = sizes.qk_norm ? "qwen3" : "qwen2";
  c.n_blocks = sizes.n_blocks;
  c.d_model = sizes.d_model;
  c.n_vocab = sizes.n_vocab;
  c.tied_embeddings = sizes.tied_embeddings;
  c.context_length = sizes.context;
  c.mixers.assign(static_cast<size_t>(sizes.n_blocks), MixerKind::kAttention);
  c.block_cells.assign(static_cast<size_t>(sizes.n_blocks), 0);
  AttentionConfig& a = c.attention;
  a.shape.n_heads = sizes.n_heads;
  a.shape.n_kv_heads = sizes.n_kv_heads;
  a.shape.head_dim = sizes.head_dim;
  a.shape.scale = 1.0f / std::sqrt(static_cast<float>(sizes.head_dim));
  a.n_rot = sizes.head_dim;
  a.rope_theta = 10000;
  a.qk_norm = sizes.qk_norm;
  a.bias = !sizes.qk_norm;
  c.ffn.d_ffn = sizes.d_ffn;
  return c;
}

}  // namespace forebay::train
