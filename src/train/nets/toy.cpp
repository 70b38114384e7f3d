#include "train/nets/toy.h"

#include <cmath>

#include "convert/ngram_hash.h"

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

ModelConfig hyper_config(const HyperSizes& sizes) {
  ModelConfig c;
  c.family = Family::kQwen4Exp;
  c.architecture = c.name = "qwen4exp";
  c.n_blocks = sizes.n_blocks;
  c.n_mtp_blocks = sizes.n_mtp_blocks;
  c.d_model = sizes.d_model;
  c.n_vocab = sizes.n_vocab;
  c.context_length = sizes.context;
  AttentionConfig& a = c.attention;
  a.shape = {sizes.n_heads, sizes.n_kv_heads, sizes.head_dim,
             1.0f / std::sqrt(static_cast<float>(sizes.head_dim))};
  a.n_rot = sizes.n_rot;
  a.rope_theta = 1e7;
  a.qk_norm = a.output_gate = true;
  c.indexer = {sizes.index_heads, sizes.index_dim, sizes.index_budget, 4};
  for (int i = 0; i < sizes.n_blocks; ++i) {
    const bool is_attention = (i + 1) % 4 == 0;
    c.mixers.push_back(is_attention ? MixerKind::kAttention : MixerKind::kGatedDelta);
    c.block_cells.push_back(is_attention ? c.indexer.block_cells : 0);
  }
  c.gated_delta.shape = {sizes.n_k_heads, sizes.n_v_heads, sizes.delta_dim, sizes.delta_dim,
                         HeadPairing::kTiled};
  c.gated_delta.conv_kernel = 4;
  c.gated_delta.sigmoid_gate = true;
  c.ffn.n_experts = sizes.n_experts;
  c.ffn.n_used = sizes.n_used;
  c.ffn.d_expert = sizes.d_expert;
  c.ffn.d_shared = sizes.d_shared;
  c.streams = {sizes.n_streams, sizes.low_rank};
  if (sizes.ngram_block < 0) return c;

  convert::NgramConfig hashed;
  hashed.ngram_size = 3;
  hashed.heads_per_ngram = static_cast<uint64_t>(sizes.heads_per_ngram);
  hashed.vocab_base = static_cast<uint64_t>(sizes.ngram_base);
  hashed.seed = sizes.ngram_seed;
  const convert::NgramHash hash = convert::make_ngram_hash(hashed, static_cast<uint64_t>(sizes.n_vocab));
  c.ngram.block = sizes.ngram_block;
  c.ngram.ngram_size = 3;
  c.ngram.heads_per_ngram = sizes.heads_per_ngram;
  c.ngram.row_width = sizes.d_model / (2 * sizes.heads_per_ngram);
  c.ngram.conv_kernel = 4;
  c.ngram.eos = sizes.eos;
  c.ngram.multipliers = hash.multipliers;
  c.ngram.head_sizes = hash.head_sizes;
  c.ngram.head_offsets = hash.head_offsets;
  return c;
}

}  // namespace forebay::train
