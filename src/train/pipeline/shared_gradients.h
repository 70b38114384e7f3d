/// The gradients of what several stages hold as one parameter.
#pragma once

#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/comm/comm.h"
#include "train/nets/net.h"
#include "train/pipeline/runner.h"
#include "train/pipeline/stage_layout.h"

namespace forebay::train {

/// Confined; collective among the holders. What it is made with must outlive it.
class SharedGradients {
 public:
  SharedGradients(Net& net, Comm& pipe, const StageLayout& layout)
      : net_(net), pipe_(pipe), shared_(layout.shared) {}

  /// Before a batch: what was gathered until now is shared already, and is put aside.
  void begin();
  /// After it: the first holder adds up, in the order of ranks, and gives everyone the sum. Errors: of Comm.
  Result<void> end(View view, int64_t step);

 private:
  bool is_here(const SharedParameter& shared) const;
  torch::Tensor parameter(const SharedParameter& shared) const;

  Net& net_;
  Comm& pipe_;
  const std::vector<SharedParameter>& shared_;
  std::vector<torch::Tensor> before_;  // of those that are here
};

}  // namespace forebay::train
