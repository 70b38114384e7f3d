/// A language model as libtorch sees it: an embedding, blocks, a head. What a pipeline stage holds is a part
/// of one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include "model/config.h"
#include "train/nets/ops.h"

namespace forebay::train {

/// Which part of a model a process holds. The rest has no parameters here.
struct StageSpan {
  int64_t first_block = 0;
  int64_t last_block = 0;  // one past
  bool has_embedding = false;
  bool has_head = false;

  bool operator==(const StageSpan&) const = default;
};
StageSpan whole_model(const ModelConfig& config);
/// Part `stage` of `n_stages`: as equal numbers of blocks as there are, the first ones one more.
StageSpan stage_of(const ModelConfig& config, int64_t stage, int64_t n_stages);

/// How much the losses of a model's own count.
struct AuxiliaryWeights {
  double balance = 0;  // experts used evenly: E sum_e f_e p_e, mean of the blocks
  double indexer = 0;  // the indexer's choice of blocks against the attention's own: KL, mean of the blocks
};

/// Sequences are padded on the right: every model here is causal, so padding changes no real position.
/// Tensors are f32 on the module's device. Parameters have the names of published checkpoints, and the form:
/// norms of some families are kept as the difference from one. Confined.
class Net : public torch::nn::Module {
 public:
  virtual const ModelConfig& config() const { return config_; }
  const StageSpan& span() const { return span_; }
  /// Numbers that a token hands from block to block: the hidden size, or streams x hidden.
  virtual int64_t boundary_width() const { return config_.wide(); }

  /// The parameter that is embedding and output head in one; empty: each has its own. Where those are two
  /// stages, both hold it.
  virtual std::string tied_parameter() const {
    return config().tied_embeddings ? "model.embed_tokens.weight" : "";
  }
  /// Whether this is a second one of a parameter that the first stage speaks for: it learns the same, and is
  /// neither sent nor saved.
  bool is_copy(std::string_view parameter) const {
    return span_.has_head && !span_.has_embedding && !parameter.empty() && parameter == tied_parameter();
  }

  /// ids [B, T] int64 -> x [B, T, boundary_width].
  virtual torch::Tensor embed(const torch::Tensor& ids_BT) = 0;
  /// Block `index` of the whole model, which must be in the span.
  virtual torch::Tensor block(int64_t index, const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) = 0;
  /// x after the last block -> logits [B, T, V], f32.
  virtual torch::Tensor head(const torch::Tensor& x_BTW) = 0;
  /// The draft head, where embedding and head are in one process: x after the last block, and the ids that
  /// made it -> logits [B, T - 1, V]: row t, given token t + 1 as well, is about token t + 2. Undefined
  /// without one. In a pipeline the last stage holds it, and it stays as it was.
  virtual torch::Tensor draft_logits(const torch::Tensor& /*x_BTW*/, const torch::Tensor& /*ids_BT*/) {
    return {};
  }

  /// The losses of the model's own of the passes since this was last called, as one scalar with gradient,
  /// each with its weight; undefined when there were none.
  virtual torch::Tensor take_auxiliary_loss() { return {}; }
  void set_auxiliary_weights(const AuxiliaryWeights& weights) { weights_ = weights; }

  void set_precision(Precision precision) { precision_ = precision; }
  /// Attention to all keys, as long as an indexer has learnt nothing yet.
  void set_dense_attention(bool dense) { dense_attention_ = dense; }

  /// ids -> x after the last block, for a model in one process.
  torch::Tensor trunk(const torch::Tensor& ids_BT);
  /// All of it, for a model in one process.
  torch::Tensor logits(const torch::Tensor& ids_BT);

 protected:
  explicit Net(StageSpan span) : span_(span) {}
  Net(ModelConfig config, StageSpan span) : config_(std::move(config)), span_(span) {}

  const ModelConfig config_;
  const StageSpan span_;
  AuxiliaryWeights weights_;
  Precision precision_ = Precision::kF32;
  bool dense_attention_ = false;
};

/// A new model, the same for every split into stages: parameters are functions of the seed and their names.
/// Without a seed they hold nothing yet. Errors: kUnsupported for a family without a Net.
Result<std::shared_ptr<Net>> make_net(const ModelConfig& config, const StageSpan& span,
                                      std::optional<uint64_t> seed);

}  // namespace forebay::train
