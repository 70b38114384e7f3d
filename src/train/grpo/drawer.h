/// Answers drawn by the engine and what they earn: the half of a run that needs a sampler, a task and words,
/// and that only the leading process has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "forebay/result.h"

#include "train/comm/control_message.h"
#include "train/fit/metrics.h"
#include "train/grpo/policy.h"
#include "train/grpo/sampler.h"
#include "train/grpo/settings.h"
#include "train/grpo/step_batch.h"
#include "train/tasks/reward_worker.h"
#include "train/tasks/task.h"

namespace forebay::train {

/// What a step drew, as every process knows it.
struct Drawn {
  std::vector<std::vector<int32_t>> prompts;
  int64_t n_answers = 1;                       // to each prompt
  std::vector<Rollout> rollouts;               // [prompts * n_answers]
  std::vector<std::optional<double>> rewards;  // of each; none: failed

  /// All of it, in order. Views into this.
  std::vector<TrainedSequence> sequences() const;
  /// [N] f32: what the sampler saw.
  torch::Tensor log_probs() const;

  Bytes to_bytes() const;
  /// Errors: kCorrupt.
  static Result<Drawn> from_bytes(const Bytes& bytes);
};

/// Prompts with the task's own answers, for cross-entropy.
struct Solved {
  std::vector<std::vector<int32_t>> prompts, answers;

  std::vector<TrainedSequence> sequences() const;
  Bytes to_bytes() const;
  static Result<Solved> from_bytes(const Bytes& bytes);
};

/// Confined.
class Drawer {
 public:
  /// Starts the process that scores: before anything here opens a connection, which it would hold open.
  /// Errors: kInvalidArgument for a task that there is not.
  static Result<std::unique_ptr<Drawer>> start(const GrpoSettings& settings);
  /// The tokenizer that it speaks with. Errors: of the file.
  Result<void> learn_words(const Words& words);

  const Task& task() const { return *task_; }
  /// Refreshed with the policy's weights by the caller.
  Sampler& sampler() { return *sampler_; }

  /// Step `at`'s; means and shares of them are added to `row`. Errors: kCancelled.
  Result<Drawn> draw(int64_t at, MetricsRow& row, std::stop_token stop);
  /// Greedy, on held-out items: val_accuracy and val_format.
  Result<void> validate(MetricsRow& row, std::stop_token stop);
  /// Batch `at` of the warm start. Errors: kUnsupported for a vocabulary that cannot end an answer.
  Result<Solved> solved(int64_t at) const;

 private:
  explicit Drawer(const GrpoSettings& settings) : settings_(settings) {}
  int64_t max_tokens() const;
  Result<std::vector<std::optional<Score>>> score(std::span<const Item> items,
                                                  std::span<const Rollout> rollouts, size_t n_answers);

  const GrpoSettings settings_;
  std::unique_ptr<Task> task_;
  std::optional<RewardWorker> rewards_;
  std::optional<Sampler> sampler_;
};

}  // namespace forebay::train
