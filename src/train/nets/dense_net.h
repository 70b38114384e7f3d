/// qwen2 and qwen3: attention over everything before, a dense feed-forward.
#pragma once

#include <vector>

#include "train/nets/net.h"

namespace forebay::train {

class DenseNet : public Net {
 public:
  DenseNet(const ModelConfig& config, const StageSpan& span, std::optional<uint64_t> seed);

  torch::Tensor embed(const torch::Tensor& ids_BT) override;
  torch::Tensor block(int64_t index, const torch::Tensor& x_BTD, const torch::Tensor& ids_BT) override;
  torch::Tensor head(const torch::Tensor& x_BTD) override;

 private:
  struct Block {
    torch::Tensor mixer_norm, ffn_norm;
    torch::Tensor q, k, v, output;
    torch::Tensor q_bias, k_bias, v_bias;  // undefined without bias
    torch::Tensor q_norm, k_norm;          // undefined without norms
    torch::Tensor gate, up, down;
  };

  torch::Tensor attention(const Block& w, const torch::Tensor& x_BTD);
  const Rotation& rotation(int64_t n_tokens, const torch::Device& device);

  torch::Tensor embedding_, output_, final_norm_;
  std::vector<Block> blocks_;  // of the span
  Rotation rotation_;
};

}  // namespace forebay::train
