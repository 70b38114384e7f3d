/// A GRPO run: draw answers, reward them, improve the policy; measure on the way what the view through the
/// codecs hides.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "forebay/result.h"

#include "core/storage.h"
#include "train/fit/metrics.h"
#include "train/grpo/settings.h"
#include "train/nets/net.h"

namespace forebay::train {

/// Where a run says how it goes.
struct RunObserver {
  std::function<void(int64_t step, double loss)> on_sft = [](int64_t, double) {};
  std::function<void(const MetricsRow&)> on_row = [](const MetricsRow&) {};
};

/// Confined. DIR gets recipe.toml (resolved), metrics.jsonl, step-N.ckpt, and model.gguf at the end.
class GrpoRun {
 public:
  /// A new run in an empty directory, or one that goes on from the last checkpoint of `directory`. Settings
  /// of run.*, sampler.*, probe.* and validation.* may differ from those that it began with; any other that
  /// does is an error that names it: a run on other data is another run. Errors: kInvalidArgument; those of
  /// files and of the codec's launch test; kCancelled.
  static Result<std::unique_ptr<GrpoRun>> open(Storage& storage, Recipe recipe, const Path& directory,
                                               bool resume, RunObserver observer, std::stop_token stop);
  ~GrpoRun();

  /// To settings.run.steps; a checkpoint on the way and at the end, and when it is interrupted. Errors:
  /// kCancelled.
  Result<void> run(std::stop_token stop);
  int64_t step() const;  // done
  const Net& policy() const;
  /// Greedy, on held-out items, between 0 and 1.
  Result<double> validation_accuracy(std::stop_token stop = {});

 private:
  struct Impl;
  explicit GrpoRun(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay::train
