/// One stage's share of the work: its blocks forward for a micro-batch, and backward once the gradient of
/// what it handed on is known. Where the tensors come from and go to is the runner's business.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/nets/net.h"
#include "train/pipeline/tied_gradients.h"

namespace forebay::train {

/// Blocks divided among stages as evenly as possible, the first stages getting the extra ones: the stage with
/// the head has that to do besides. Errors: fewer blocks than stages.
Result<std::vector<StageSpan>> split_blocks(int64_t n_blocks, int64_t n_stages);

/// Confined. `net` and `tied` must outlive it; the net holds (at least) `span`.
class Stage {
 public:
  Stage(Net& net, StageSpan span, TiedGradients& tied) : net_(net), span_(span), tied_(tied) {}

  const StageSpan& span() const { return span_; }

  /// x after this stage, or logits where it has the head. `x_BTW` is ignored by the stage with the embedding.
  /// Keeps nothing.
  torch::Tensor infer(const torch::Tensor& ids_BT, const torch::Tensor& x_BTW);

  /// The same, keeping what backward() needs. What comes back has no history.
  torch::Tensor forward(const torch::Tensor& ids_BT, const torch::Tensor& x_BTW);
  /// For the oldest forward() that has had none: adds the gradients of `loss(logits)` (with the head) or of
  /// `gradient_BTW` . output, and of the model's own losses. Returns the gradient of x_BTW; undefined at the
  /// embedding.
  torch::Tensor backward_loss(const std::function<torch::Tensor(const torch::Tensor&)>& loss);
  torch::Tensor backward(const torch::Tensor& gradient_BTW);

  /// Micro-batches forward and not yet backward.
  size_t n_in_flight() const { return passes_.size(); }
  /// Forgets them: after a failure.
  void discard() { passes_.clear(); }

 private:
  struct Pass {
    torch::Tensor input;                    // a leaf; undefined at the embedding
    torch::Tensor before_head, head_input;  // where embedding and head are tied: the graph is cut there
    torch::Tensor output;
    torch::Tensor auxiliary;  // undefined: none
  };

  torch::Tensor run_blocks(const torch::Tensor& ids_BT, torch::Tensor x_BTW);
  torch::Tensor finish(std::vector<torch::Tensor> roots, std::vector<torch::Tensor> gradients);

  Net& net_;
  StageSpan span_;
  TiedGradients& tied_;
  std::deque<Pass> passes_;
};

/// The sum of squares of each parameter's gradient, by name; 0 without one.
std::vector<std::pair<std::string, double>> gradient_squares(const Net& net);

}  // namespace forebay::train
