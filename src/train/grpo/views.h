/// The policy and the reference as the pipeline sees them: through the codecs, or densely. One place knows
/// which codecs are in use, when they change, and what crossed the wire.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/anchor/confinement.h"
#include "train/grpo/settings.h"
#include "train/grpo/step_batch.h"
#include "train/grpo/team.h"
#include "train/nets/net.h"
#include "train/pipeline/runner.h"
#include "train/pipeline/wire_tap.h"
#include "train/wire/codec.h"
#include "train/wire/ledger.h"
#include "train/wire/view_epoch.h"

namespace forebay::train {

class StageRunner;

/// Log-probs and the view that they were made under.
struct LogProbs {
  torch::Tensor values;  // [N] f32, CPU, the same in every process
  ViewEpoch epoch;
};

/// The loss of micro-batch i from the log-probs of its answer tokens; called where the head is.
using MicroLoss = std::function<torch::Tensor(size_t i, const torch::Tensor& log_probs)>;

/// Confined. All calls are collective but has_codec(), shares_noise(), epoch(), wire() and
/// confinement().
class Views {
 public:
  /// Both nets are whole, or this process's stage, and must outlive this, as `team` must. Errors: of the
  /// codec's launch test and of the pipeline.
  static Result<std::unique_ptr<Views>> create(Net& policy, Net& reference, const GrpoSettings& settings,
                                               Team& team);
  ~Views();

  /// Whether the codec view is another than the dense one.
  bool has_codec() const { return codec_ != nullptr; }
  /// Whether passes over the same rows see the same noise: not in the control that has none in common.
  bool shares_noise() const { return settings_.wire.codec.share; }
  int64_t n_boundaries() const { return settings_.pipeline.stages - 1; }
  ViewEpoch epoch(View view, int64_t step) const;

  enum class Of { kPolicy, kReference };
  Result<LogProbs> log_probs(Of net, View view, const StepBatch& batch, int64_t step);
  /// Adds the gradients of sum_i loss(i, log-probs of micro-batch i). Errors: kInternal when `old` was made
  /// under another view than this pass uses.
  Result<void> train(const StepBatch& batch, int64_t step, const LogProbs& old, const MicroLoss& loss,
                     View view = View::kCodec);
  /// Of the whole model.
  Result<double> gradient_norm() { return policy_->gradient_norm(); }

  /// The step's updates are done (or were skipped: committed is false): bases that are due change now, and
  /// not before. Returns how many changed.
  Result<int64_t> end_step(int64_t step, bool committed);

  /// The policy with codecs on its first n boundaries only, uncounted; `fresh` has the bases as they would be
  /// if they were refreshed now. What is asked leaves no trace.
  enum class Bases { kInUse, kFresh };
  Result<torch::Tensor> partial_log_probs(const StepBatch& batch, int64_t step, int64_t n_with_codec,
                                          Bases bases);
  /// Whether kFresh is another view than kInUse. Makes the fresh ones.
  Result<bool> prepare_fresh_bases();

  /// Where other traffic of the step is counted.
  WireLedger& wire() { return ledger_; }
  const Confinement& confinement() const { return confinement_; }
  /// What all processes sent since this was last called, at the leader. Errors, there: kInternal when what
  /// receivers counted is not what was sent, or the rows are not those of the passes that were asked for.
  Result<WireLedger> take_ledger();
  /// Seconds that the stages computed, coded and waited since this was last called, means over the stages, at
  /// the leader; empty in one process.
  Result<std::map<std::string, double>> take_times();
  /// The codec's, of all boundaries, at the leader.
  Result<std::map<std::string, torch::Tensor>> state();
  /// What the leader has.
  Result<void> restore(const std::map<std::string, torch::Tensor>& state);

 private:
  Views(Net& policy, const GrpoSettings& settings, Team& team)
      : policy_net_(policy), settings_(settings), team_(team) {}
  Result<std::unique_ptr<Runner>> make_runner(Net& net, std::vector<Codec*> codecs, WireTap tap,
                                              WireTap meter);
  Result<torch::Tensor> forward(Runner& runner, View view, const StepBatch& batch, int64_t step);
  bool refresh_is_due(int64_t step) const;
  void expect_rows(Leg leg, const StepBatch& batch);
  void count_tied_gradients();

  Net& policy_net_;
  const GrpoSettings settings_;
  Team& team_;
  std::unique_ptr<Codec> codec_, fresh_;
  std::unique_ptr<Runner> policy_, reference_;
  std::vector<StageRunner*> stages_;  // the same two, where they are of several processes
  WireLedger ledger_, received_;
  std::array<int64_t, 2> expected_rows_ = {};  // by leg, over all boundaries, of the passes through codecs
  Confinement confinement_;
  int64_t refreshed_early_ = 0;  // of the control that publishes at once
};

}  // namespace forebay::train
