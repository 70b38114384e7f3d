/// The policy and the reference as the pipeline sees them: through the codecs, or densely. One place knows
/// which codecs are in use, when they change, and what crossed the wire.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/grpo/settings.h"
#include "train/grpo/step_batch.h"
#include "train/nets/net.h"
#include "train/pipeline/runner.h"
#include "train/wire/codec.h"
#include "train/wire/ledger.h"
#include "train/wire/view_epoch.h"

namespace forebay::train {

/// Log-probs and the view that they were made under.
struct LogProbs {
  torch::Tensor values;  // [N] f32, CPU
  ViewEpoch epoch;
};

/// Confined.
class Views {
 public:
  /// Both nets are whole and must outlive this. Errors: of the codec's launch test and of the pipeline.
  static Result<std::unique_ptr<Views>> create(Net& policy, Net& reference, const GrpoSettings& settings);

  /// Whether the codec view is another than the dense one.
  bool has_codec() const { return codec_ != nullptr; }

  enum class Of { kPolicy, kReference };
  Result<LogProbs> log_probs(Of net, View view, const StepBatch& batch, int64_t step);
  /// Adds the gradients of sum_i loss(i, log-probs of micro-batch i). Errors: kInternal when `old` was made
  /// under another view than this pass uses.
  Result<void> train(const StepBatch& batch, int64_t step, const LogProbs& old,
                     const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss);
  Result<double> gradient_norm() { return policy_->gradient_norm(); }

  /// The step's updates are done (or were skipped: committed is false): bases that are due change now, and
  /// not before. Returns how many changed.
  Result<int64_t> end_step(int64_t step, bool committed);

  /// What crossed since this was last called.
  WireLedger take_ledger();
  std::map<std::string, torch::Tensor> state() const;
  Result<void> restore(const std::map<std::string, torch::Tensor>& state);

 private:
  Views(Net& policy, const GrpoSettings& settings) : policy_net_(policy), settings_(settings) {}
  ViewEpoch epoch(View view, int64_t step) const;

  Net& policy_net_;
  GrpoSettings settings_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Runner> policy_, reference_;
  WireLedger ledger_;
};

}  // namespace forebay::train
