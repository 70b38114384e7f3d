/// The updates of one step: the objective's gradients through the pipeline, the optimiser, the anchor.
#pragma once

#include <memory>

#include "forebay/result.h"

#include "train/fit/adamw.h"
#include "train/fit/metrics.h"
#include "train/grpo/advantages.h"
#include "train/grpo/settings.h"
#include "train/grpo/slow_circuit.h"
#include "train/grpo/step_batch.h"
#include "train/grpo/team.h"
#include "train/grpo/views.h"
#include "train/nets/net.h"

namespace forebay::train {

/// What a step learns from; the same in every process.
struct Lesson {
  int64_t step = 0;
  const StepBatch& batch;
  const LogProbs& old;        // of the policy, codec view
  const LogProbs& reference;  // codec view
  torch::Tensor rollout;      // [N] f32: what the sampler saw
  const Advantages& advantages;
  double lr = 0;
  double beta = 0;
};

/// Confined; collective but for optimizer(). What it is made with must outlive it.
class Learner {
 public:
  Learner(Net& policy, Views& views, const GrpoSettings& settings, Team& team, SlowCircuit* anchor);

  /// grpo.ticks updates, unless nothing was kept or a gradient is not finite; bases change after them. The
  /// numbers go into `row` (complete at every process).
  Result<void> learn(const Lesson& lesson, MetricsRow& row);
  AdamW& optimizer() { return *optimizer_; }

 private:
  struct Tick;
  Result<void> one_tick(const Lesson& lesson, const Tick& tick, torch::Tensor& sums);
  Result<std::vector<torch::Tensor>> replay(const Lesson& lesson, const Tick& tick);

  Net& policy_;
  Views& views_;
  const GrpoSettings settings_;
  Team& team_;
  SlowCircuit* anchor_;
  std::unique_ptr<AdamW> optimizer_;
};

/// Scales all gradients by min(1, limit / norm); a limit of 0 leaves them. `norm` is the whole model's.
void clip_gradients(Net& net, double norm, double limit);

}  // namespace forebay::train
