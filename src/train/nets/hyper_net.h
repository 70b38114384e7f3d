/// qwen4exp: several residual streams, gated delta rule and sparse attention in turn, experts, hashed n-grams
/// and a draft head.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/nets/gated_delta.h"
#include "train/nets/mixture.h"
#include "train/nets/net.h"
#include "train/nets/ngram.h"
#include "train/nets/sparse_attention.h"
#include "train/nets/streams.h"

namespace forebay::train {

class HyperNet : public Net {
 public:
  HyperNet(const ModelConfig& config, const StageSpan& span, std::optional<uint64_t> seed);

  torch::Tensor embed(const torch::Tensor& ids_BT) override;
  torch::Tensor block(int64_t index, const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) override;
  torch::Tensor head(const torch::Tensor& x_BTW) override;
  torch::Tensor draft_logits(const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) override;
  torch::Tensor take_auxiliary_loss() override;

 private:
  struct Block {
    StreamWeights mixer_streams, ffn_streams;
    std::optional<SparseAttentionWeights> attention;
    std::optional<DeltaWeights> gated_delta;
    std::optional<NgramParameters> ngram;
    MixtureWeights ffn;
  };
  /// One more block over (hidden state, next token); where the head is, whose output matrix it uses.
  struct DraftHead {
    torch::Tensor embedding_norm, hidden_norm;        // less one
    torch::Tensor project_embedding, project_hidden;  // [D, D]
    Block block;
    StreamWeights final_streams;
  };

  Block make_block(ParameterMaker& maker, const std::string& name, bool is_recurrent, bool has_ngrams) const;
  torch::Tensor run(const Block& w, int64_t block_cells, const torch::Tensor& x_BTW,
                    const torch::Tensor& ids_BT);
  torch::Tensor output(const StreamWeights& final_streams, const torch::Tensor& x_BTW);
  const Rotations& rotations(int64_t n_tokens, const torch::Device& device);

  torch::Tensor embedding_, output_;
  StreamWeights final_streams_;
  std::vector<Block> blocks_;  // of the span
  std::optional<DraftHead> draft_;
  Rotations rotations_;
  std::vector<torch::Tensor> balance_, indexer_;  // since the last take_auxiliary_loss()
};

}  // namespace forebay::train
