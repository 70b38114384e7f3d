/// Forward and backward of a batch through all stages of a model, whether they are one process or several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <torch/torch.h>

#include "forebay/result.h"

namespace forebay::train {

/// Which rows the receiver of a boundary sees: the codec's, or (the probe, the reference) the sender's own.
enum class View { kCodec, kDense };

/// A few sequences that go through the stages together. Every process of a pipeline is given the same ones.
struct MicroBatch {
  torch::Tensor ids_BT;  // int64, padded on the right
};

/// Confined. Calls are collective: every process of the pipeline makes the same ones in the same order.
class Runner {
 public:
  virtual ~Runner() = default;
  /// Whether `sink` and `loss` are called here (where the head is).
  virtual bool has_head() const = 0;

  /// Without gradients. `step` keys the codecs' noise. sink(i, logits [B, T, V]) in the order of the
  /// micro-batches.
  virtual Result<void> forward(std::span<const MicroBatch> batches, View view, int64_t step,
                               const std::function<void(size_t, const torch::Tensor&)>& sink) = 0;

  /// Adds the gradients of sum_i loss(i, logits) to this process's parameters (the losses of the model's own
  /// are added where they arise). An undefined loss counts as zero. View::kDense is the replay without
  /// codecs.
  virtual Result<void> train(std::span<const MicroBatch> batches, int64_t step,
                             const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss,
                             View view = View::kCodec) = 0;

  /// The L2 norm of the gradients of the whole model, each parameter once: the same number in every process,
  /// and the same bits for any number of them.
  virtual Result<double> gradient_norm() = 0;
};

}  // namespace forebay::train
