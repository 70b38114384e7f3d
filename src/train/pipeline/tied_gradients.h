/// The gradient of a parameter that is both embedding and head, where one process holds both ends.
#pragma once

#include <utility>

#include <torch/torch.h>

#include "train/nets/net.h"

namespace forebay::train {

/// Sums each use's gradients apart over the micro-batches, and adds the two sums at the end: the order in
/// which a pipeline across processes adds them, so that both get the same bits. Confined.
class TiedGradients {
 public:
  enum class Use { kEmbedding, kHead };

  /// Without such a parameter, or where another process holds one of its uses, all calls do nothing more
  /// than the work.
  explicit TiedGradients(const Net& net);
  bool is_active() const { return parameter_.defined(); }

  /// Before a batch: what the parameter has gathered until now is put aside.
  void begin();
  /// Runs `work`, a backward pass through one use.
  template <typename Work>
  void of(Use use, Work&& work) {
    if (!is_active()) return work();
    torch::Tensor& sum = use == Use::kEmbedding ? embedding_ : head_;
    parameter_.mutable_grad() = std::move(sum);
    work();
    sum = std::exchange(parameter_.mutable_grad(), torch::Tensor());
  }
  /// After it: before + (embedding + head).
  void end();

 private:
  torch::Tensor parameter_;  // undefined: inactive
  torch::Tensor before_, embedding_, head_;
};

}  // namespace forebay::train
