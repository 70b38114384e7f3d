/// Attention with an output gate, over the blocks of keys that an indexer chooses.
#pragma once

#include <string>

#include "model/config.h"
#include "train/nets/ops.h"
#include "train/nets/parameters.h"

namespace forebay::train {

struct SparseAttentionWeights {
  torch::Tensor q;  // per head the query's rows, then its gate's
  torch::Tensor k, v, output;
  torch::Tensor q_norm, k_norm;              // less one
  torch::Tensor index_qk;                    // the index queries' rows, then the key's
  torch::Tensor index_q_norm, index_k_norm;  // less one
};
SparseAttentionWeights make_sparse_attention_weights(ParameterMaker& maker, const std::string& name,
                                                     const ModelConfig& config);

/// Positions of T tokens, and of the first tokens of their blocks.
struct Rotations {
  Rotation tokens, blocks;
};

/// What the indexer says about T queries and the blocks of `block` keys among them.
struct BlockChoice {
  torch::Tensor score;    // [B, T, blocks]
  torch::Tensor visible;  // [T, blocks] bool: complete before the query's next position
  torch::Tensor chosen;   // [B, T, blocks] bool: visible, and among the best
};
/// x [B, T, D]; its gradient does not come from here.
BlockChoice choose_blocks(const SparseAttentionWeights& w, const ModelConfig& config,
                          const torch::Tensor& x_BTD, const Rotations& rotations);
/// [B, 1, T, T] bool: keys of complete blocks that were not chosen.
torch::Tensor hidden_keys(const BlockChoice& choice, int64_t block, int64_t n_tokens);

/// KL(attention's probability of the blocks it sees || softmax of the indexer's scores), mean over queries
/// that see a block. probabilities [B, H, T, T] count as given.
torch::Tensor indexer_loss(const BlockChoice& choice, const torch::Tensor& probabilities, int64_t block);

struct SparseAttention {
  torch::Tensor y;             // [B, T, D]
  torch::Tensor indexer_loss;  // undefined unless asked for
};
/// `block` 0: dense, without an indexer. `dense`: over all keys, whatever the indexer says.
SparseAttention sparse_attention_layer(const SparseAttentionWeights& w, const ModelConfig& config,
                                       int64_t block, bool dense, bool with_loss, const torch::Tensor& x_BTD,
                                       const Rotations& rotations, Precision precision);

}  // namespace forebay::train
