/// A language model as libtorch sees it: an embedding, blocks, a head. What a pipeline stage holds is a part
/// of one.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/torch.h>

#include "model/config.h"

namespace forebay::train {

/// Which part of a model a process holds. The rest has no parameters here.
struct StageSpan {
  int64_t first_block = 0;
  int64_t last_block = 0;  // one past
  bool has_embedding = false;
  bool has_head = false;
};

/// Sequences are padded on the right: every model here is causal, so padding changes no real position.
/// Tensors are f32 (or bf16 under autocast) on the module's device. Confined.
class Net : public torch::nn::Module {
 public:
  virtual const ModelConfig& config() const = 0;
  const StageSpan& span() const { return span_; }
  /// Numbers that a token hands from block to block: the hidden size, or streams x hidden.
  virtual int64_t boundary_width() const = 0;

  /// ids [B, T] -> x [B, T, boundary_width].
  virtual torch::Tensor embed(const torch::Tensor& ids_BT) = 0;
  /// Block `index` of the whole model, which must be in the span.
  virtual torch::Tensor block(int64_t index, const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) = 0;
  /// x after the last block -> logits [B, T, V], f32.
  virtual torch::Tensor head(const torch::Tensor& x_BTW) = 0;

  /// The losses of the model's own (load balance, indexer, MTP) of the passes since this was last called, as
  /// one scalar with gradient, each with its weight; undefined when there were none.
  virtual torch::Tensor take_auxiliary_loss() { return {}; }

  /// All of it, for a model in one process.
  torch::Tensor logits(const torch::Tensor& ids_BT);

 protected:
  explicit Net(StageSpan span) : span_(span) {}

 private:
  StageSpan span_;
};

}  // namespace forebay::train
