/// A GRPO run: draw answers, reward them, improve the policy; measure on the way what the view through the
/// codecs hides.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "forebay/result.h"

#include "core/storage.h"
#include "core/world.h"
#include "train/fit/metrics.h"
#include "train/grpo/settings.h"
#include "train/nets/files.h"
#include "train/nets/net.h"

namespace forebay::train {

/// Where a run says how it goes; called in the leading process.
struct RunObserver {
  std::function<void(int64_t step, double loss)> on_sft = [](int64_t, double) {};
  std::function<void(const MetricsRow&)> on_row = [](const MetricsRow&) {};
};

/// Confined. One process, or as many as `world` says, each with a stage of the model: they make the same
/// calls in the same order, and an error in one is an error in all that names its rank. The directory is the
/// leading process's (rank 0): it gets recipe.toml (resolved), metrics.jsonl, step-N.ckpt, and model.gguf at
/// the end. The others need the model's file only.
class GrpoRun {
 public:
  /// A new run in an empty directory, or one that goes on from the last checkpoint of `directory`, in as many
  /// processes as before or not. Then a setting that changes results (same_run.h) must be what it was.
  /// Errors: kInvalidArgument; those of files, of meeting and of the codec's launch test; kCancelled.
  static Result<std::unique_ptr<GrpoRun>> open(Storage& storage, Recipe recipe, const Path& directory,
                                               bool resume, RunObserver observer, std::stop_token stop,
                                               const World& world = World());
  ~GrpoRun();  // without close(), the other processes see this one as gone

  /// To settings.run.steps; a checkpoint on the way and at the end, and when it is interrupted. Errors:
  /// kCancelled.
  Result<void> run(std::stop_token stop);
  int64_t step() const;  // done
  /// Of this process: all of it, or a stage.
  const Net& policy() const;
  /// All of it, at the leading process; empty elsewhere.
  Result<NamedTensors> policy_tensors();
  /// Greedy, on held-out items, between 0 and 1; NaN in all processes but the leading one.
  Result<double> validation_accuracy(std::stop_token stop = {});
  /// The end, as agreed with the other processes.
  Result<void> close();

 private:
  struct Impl;
  explicit GrpoRun(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay::train
