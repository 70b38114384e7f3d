/// What a request asks of the engine's thread, and what comes back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forebay/engine.h"

namespace forebay {

class Ticket;

/// One answer that is wanted.
struct Job {
  std::vector<int32_t> prompt;
  GenerateOptions options;        // without `stop`
  std::vector<std::string> stop;  // text of the content, not of the reasoning, that ends the answer
  std::string client;             // clients take turns
  bool starts_thinking = false;   // the prompt leaves <think> open
  int64_t thinking_budget = -1;   // tokens of reasoning before it is closed; -1: as many as the model wants
  std::vector<int32_t> wrap_up;   // the tokens that close it
  std::shared_ptr<const Ticket> after = {};  // waits until this one's prompt is read, which it shares
};

struct AnswerToken {
  int32_t id = -1;  // -1: text that was held back
  std::string text;
  double log_prob = 0;
  std::vector<std::pair<int32_t, float>> top;
  bool reasoning = false;
};

struct AnswerEnd {
  GenerateReport report;
  int64_t n_reasoning = 0;      // tokens, of report.n_generated
  bool budget_reached = false;  // the thinking was closed for the model
  std::string stop;             // which of Job::stop ended it
};

enum class Phase { kQueued, kPrompt, kDecode, kEnded };
std::string_view name_of(Phase phase);  // "queued", ...

/// A job's way through the scheduler: the engine's thread writes, the request's thread reads. Thread-safe.
class Ticket {
 public:
  explicit Ticket(Job job) : job_(std::move(job)) {}
  Ticket(const Ticket&) = delete;

  /// The job stops at its next step. What it had so far stays.
  void cancel() { cancelled_.store(true); }
  bool cancelled() const { return cancelled_.load(); }

  struct Update {
    std::vector<AnswerToken> tokens;       // since the last update
    std::optional<SyncReport> prompt;      // when the job has begun, in every update
    std::optional<Result<AnswerEnd>> end;  // nothing follows
  };
  /// Waits until there is something new, at most `most`.
  Update wait(std::chrono::milliseconds most);

  const Job& job() const { return job_; }
  Phase phase() const { return phase_.load(); }
  std::chrono::steady_clock::time_point submitted() const { return submitted_; }

  // For the engine's thread.
  void begin(const SyncReport& prompt);
  void set_phase(Phase phase) { phase_.store(phase); }
  void push(AnswerToken token);
  void finish(Result<AnswerEnd> end);

 private:
  const Job job_;
  const std::chrono::steady_clock::time_point submitted_ = std::chrono::steady_clock::now();
  std::atomic<bool> cancelled_ = false;
  std::atomic<Phase> phase_ = Phase::kQueued;
  std::mutex mutex_;
  std::condition_variable changed_;
  Update news_;  // guarded by mutex_
};

}  // namespace forebay
