/// The KL ledger inside a run: which shortcut each part of a step's gap comes from.
#pragma once

#include "forebay/result.h"

#include "train/fit/metrics.h"
#include "train/grpo/drawer.h"
#include "train/grpo/step_batch.h"
#include "train/grpo/team.h"
#include "train/grpo/views.h"
#include "train/grpo/weight_feed.h"
#include "train/nets/net.h"

namespace forebay::train {

struct LedgerStep {
  int64_t step = 0;
  const Drawn& drawn;
  const StepBatch& batch;
  torch::Tensor rollout;  // [N]: the sampler as it ran
  torch::Tensor old;      // [N]: the view that is trained
};

/// Adds ledger_* to `row`: means over tokens of one view's log-prob minus the next one's, from the sampler
/// without its shortcuts, over the sampler as it ran, the trainer's dense pass, one boundary after the other,
/// the bases as they are instead of fresh, to the weights as they are instead of those that the sampler had.
/// Nothing of the run changes. Collective; `sampler` is the leader's, null elsewhere, and has other weights
/// afterwards. Errors: kInternal when the terms do not add up to the gap within 1e-6.
Result<void> add_ledger(const LedgerStep& at, Net& policy, Views& views, WeightFeed& feed, Sampler* sampler,
                        Team& team, MetricsRow& row);

}  // namespace forebay::train
