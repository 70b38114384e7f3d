/// The engine's thread: takes jobs in turn, keeps conversations warm, and has all active ones in one window.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "forebay/engine.h"

#include "server/fair_queue.h"
#include "server/job.h"
#include "server/slots.h"

namespace forebay {

struct SchedulerOptions {
  int n_slots = 4;          // conversations kept warm, and answers made at once; each takes a state's memory
  size_t max_queued = 256;  // jobs that may wait
  int64_t prompt_share = 128;                    // most prompt tokens in a window that others decode in
  std::function<void()> before_step = {};        // tests: runs on the engine's thread before each window
  std::chrono::milliseconds longest_sleep{200};  // a wake-up that was lost costs no more
  bool lose_wake_ups = false;                    // tests: all of them are
  /// At the end: the conversation in slot i, whose answer was cut off. On the engine's thread.
  std::function<void(size_t i, const Session& session)> on_cut_off = {};
};

/// What the engine's thread did since it started. Times are of whole windows.
struct SchedulerStats {
  int64_t n_submitted = 0, n_finished = 0, n_cancelled = 0, n_failed = 0;
  int64_t n_prompt = 0, n_reused = 0, n_prefilled = 0, n_generated = 0;
  int64_t n_loaded = 0;  // of the reused ones, from files
  int64_t n_windows = 0, n_window_rows = 0;
  double prompt_seconds = 0, decode_seconds = 0;  // windows with prompt tokens; windows without
  std::vector<double> first_token_seconds;        // of the last answers, from submission
};

struct SlotStatus {
  Phase phase = Phase::kEnded;                               // kEnded: idle
  int64_t n_tokens = 0;                                      // in the state
  int64_t n_prompt = 0, n_prompt_done = 0, n_generated = 0;  // of its last answer, which may be being made
  std::string why;  // of its last prompt: what was reused and why not more
};

struct SchedulerStatus {
  SchedulerStats stats;
  size_t n_queued = 0;
  std::vector<SlotStatus> slots;
  // How long the engine's thread has been at what it does now, and what that is; 0: it waits for work.
  double busy_seconds = 0;
  std::string_view busy_with;
  std::optional<ExpertCacheStats> experts;
  std::optional<CacheDirStats> cache;
  uint64_t reserved_bytes = 0;
};

/// submit, run and status are thread-safe.
class Scheduler {
 public:
  /// Reserves the slots' states and starts the thread. Until it is stopped the engine is its own, but for
  /// what Engine lets every thread call. Errors: kOutOfMemory.
  static Result<std::unique_ptr<Scheduler>> start(Engine& engine, SchedulerOptions options);
  ~Scheduler();

  /// Errors: kOutOfMemory when the queue is full; kCancelled after stop().
  Result<std::shared_ptr<Ticket>> submit(Job job);
  /// Runs `task` on the engine's thread between two windows, with the slots, and waits for it.
  /// Errors: the task's; kCancelled after stop(); kIo when the engine does not come to it in `most`.
  Result<void> run(std::function<Result<void>(std::span<const std::unique_ptr<Slot>>)> task,
                   std::chrono::milliseconds most = std::chrono::seconds(30));

  SchedulerStatus status() const;

  /// No new jobs; waiting ones are cancelled, active ones may go on for `grace`. Then the thread has ended.
  void stop(std::chrono::milliseconds grace);

 private:
  using Clock = std::chrono::steady_clock;
  struct Task;
  static double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  Scheduler(Engine& engine, SchedulerOptions options) : engine_(engine), options_(std::move(options)) {}
  void wake();
  void loop();
  /// From here on the thread is at this; with nothing, it waits.
  void at(std::string_view what);
  bool wait_for_work();
  void run_tasks();
  void drop_cancelled();
  void admit();
  void begin(Slot& slot, std::shared_ptr<Ticket> ticket);
  int64_t copy_from_others(Slot& slot);
  void step();
  std::vector<Feed> fill_window(std::vector<Slot*>& taking);
  void take(Slot& slot);
  void finish(Slot& slot, Result<AnswerEnd> end);
  void cancel(Slot& slot);
  bool hear(Slot& slot, const GeneratedToken& token);
  AnswerEnd end_of(Slot& slot) const;
  void fail_all(const std::string& message);
  void publish();

  Engine& engine_;
  const SchedulerOptions options_;
  std::vector<std::unique_ptr<Slot>> slots_;  // of the engine's thread
  uint64_t turn_ = 0;
  size_t next_prompt_ = 0;  // whose part comes first
  Clock::time_point published_{};

  mutable std::mutex mutex_;
  std::condition_variable work_;
  FairQueue<std::shared_ptr<Ticket>> queue_;  // guarded by mutex_, as is what follows
  std::vector<std::shared_ptr<Task>> tasks_;
  SchedulerStatus status_;
  Clock::time_point busy_since_{};
  std::string_view busy_with_;
  bool stopping_ = false;
  Clock::time_point stop_at_{};

  std::thread thread_;
};

}  // namespace forebay
