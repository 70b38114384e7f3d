/// Scores answers in a process of its own, so that an answer that kills or hangs the scorer costs one rollout
/// and not the run.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/tasks/task.h"

namespace forebay::train {

struct Answer {
  const Item* item = nullptr;
  std::string text;
};

/// Confined.
class RewardWorker {
 public:
  /// Starts the process. `task` must outlive this. Errors: kIo.
  static Result<RewardWorker> start(const Task& task,
                                    std::chrono::milliseconds patience = std::chrono::seconds(5));
  RewardWorker(RewardWorker&&) noexcept;
  RewardWorker& operator=(RewardWorker&&) = delete;
  ~RewardWorker();

  /// One entry per answer, in order. Nothing: the worker died over it or took longer than its patience; that
  /// rollout has no reward, which is not the reward 0. Errors: kIo when no worker can be started again.
  Result<std::vector<std::optional<Score>>> score(std::span<const Answer> answers);
  int64_t n_deaths() const { return n_deaths_; }
  int process() const { return process_; }  // for tests

 private:
  RewardWorker(const Task& task, std::chrono::milliseconds patience) : task_(&task), patience_(patience) {}
  Result<void> launch();
  void stop();
  std::optional<Score> ask(const Answer& answer);

  const Task* task_;
  std::chrono::milliseconds patience_;
  int process_ = -1;
  int socket_ = -1;
  int64_t n_deaths_ = 0;
};

}  // namespace forebay::train
