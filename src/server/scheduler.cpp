#include "server/scheduler.h"

#include <algorithm>

#include <fmt/format.h>

namespace forebay {
namespace {

constexpr std::chrono::milliseconds kPublishEvery{50};

}  // namespace

struct Scheduler::Task {
  std::function<Result<void>(std::span<const std::unique_ptr<Slot>>)> body;
  std::optional<Result<void>> result;  // guarded by `mutex`
  bool abandoned = false;              // nobody waits any more
  std::mutex mutex;
  std::condition_variable done;

  void finish(Result<void> with) {
    const std::lock_guard lock(mutex);
    result = std::move(with);
    done.notify_one();
  }
};

Result<std::unique_ptr<Scheduler>> Scheduler::start(Engine& engine, SchedulerOptions options) {
  std::unique_ptr<Scheduler> scheduler(new Scheduler(engine, std::move(options)));
  for (int i = 0; i < scheduler->options_.n_slots; ++i)
    scheduler->slots_.push_back(std::make_unique<Slot>(TRY(engine.new_session())));
  scheduler->publish();
  scheduler->thread_ = std::thread([s = scheduler.get()] { s->loop(); });
  return scheduler;
}

Scheduler::~Scheduler() {
  stop(std::chrono::milliseconds(0));
}

void Scheduler::stop(std::chrono::milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) stop_at_ = Clock::now() + grace;
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<Ticket>> Scheduler::submit(Job job) {
  auto ticket = std::make_shared<Ticket>(std::move(job));
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Error{Code::kCancelled, "the server is shutting down"};
    if (queue_.size() >= options_.max_queued)
      return Error{Code::kOutOfMemory, fmt::format("queue: {} requests wait already", queue_.size())};
    queue_.push(ticket->job().client, ticket);
    ++status_.stats.n_submitted;
  }
  wake();
  return ticket;
}

Result<void> Scheduler::run(std::function<Result<void>(std::span<const std::unique_ptr<Slot>>)> body,
                            std::chrono::milliseconds most) {
  auto task = std::make_shared<Task>();
  task->body = std::move(body);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Error{Code::kCancelled, "the server is shutting down"};
    tasks_.push_back(task);
  }
  wake();
  std::unique_lock lock(task->mutex);
  if (task->done.wait_for(lock, most, [&] { return task->result.has_value(); })) return *task->result;
  task->abandoned = true;
  return Error{Code::kIo, fmt::format("engine: busy for {} ms", most.count())};
}

SchedulerStatus Scheduler::status() const {
  const std::lock_guard lock(mutex_);
  SchedulerStatus status = status_;
  status.n_queued = queue_.size();
  if (busy_since_ == Clock::time_point()) return status;
  status.busy_seconds = seconds_between(busy_since_, Clock::now());
  status.busy_with = busy_with_;
  return status;
}

void Scheduler::wake() {
  if (!options_.lose_wake_ups) work_.notify_one();
}

void Scheduler::at(std::string_view what) {
  const std::lock_guard lock(mutex_);
  busy_since_ = what.empty() ? Clock::time_point() : Clock::now();
  busy_with_ = what;
}

void Scheduler::loop() {
  while (wait_for_work()) {
    try {
      at("saving or restoring a session");
      run_tasks();
      drop_cancelled();
      at("beginning an answer, which may read a state from a file or wait for one that is written");
      admit();
      at("a pass");
      step();
      publish();
    } catch (const std::exception& error) {
      fail_all(error.what());
    }
    at({});
  }
  std::vector<std::shared_ptr<Task>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(tasks_);
  }
  for (const auto& task : left) task->finish(Error{Code::kCancelled, "the server is shutting down"});
  at({});
  publish();
}

/// False when it is time to end: stopping, and nothing is active.
bool Scheduler::wait_for_work() {
  const bool active = std::any_of(slots_.begin(), slots_.end(), [](const auto& s) { return s->busy(); });
  std::vector<std::shared_ptr<Ticket>> refused;
  bool goes_on = true, cancel_all = false;
  {
    std::unique_lock lock(mutex_);
    if (!active)
      work_.wait_for(lock, options_.longest_sleep,
                     [&] { return stopping_ || queue_.size() > 0 || !tasks_.empty(); });
    if (stopping_) {
      while (auto ticket = queue_.pop()) refused.push_back(std::move(*ticket));
      cancel_all = Clock::now() >= stop_at_;
      goes_on = active && !cancel_all;
    }
  }
  for (const auto& ticket : refused) ticket->finish(Error{Code::kCancelled, "the server is shutting down"});
  for (size_t i = 0; cancel_all && i < slots_.size(); ++i) {
    if (!slots_[i]->busy()) continue;
    at("saving what was cut off");
    cancel(*slots_[i]);
    if (options_.on_cut_off) options_.on_cut_off(i, slots_[i]->session);
  }
  return goes_on;
}

void Scheduler::run_tasks() {
  std::vector<std::shared_ptr<Task>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) {
    {
      const std::lock_guard lock(task->mutex);
      if (task->abandoned) continue;
    }
    task->finish(task->body(slots_));
  }
}

void Scheduler::drop_cancelled() {
  std::vector<std::shared_ptr<Ticket>> dropped;
  {
    const std::lock_guard lock(mutex_);
    queue_.remove_if([&](const std::shared_ptr<Ticket>& ticket) {
      if (!ticket->cancelled()) return false;
      dropped.push_back(ticket);
      ++status_.stats.n_cancelled;
      return true;
    });
  }
  for (const auto& ticket : dropped) ticket->finish(Error{Code::kCancelled, "cancelled while it waited"});
  for (const auto& slot : slots_)
    if (slot->busy() && slot->ticket->cancelled()) cancel(*slot);
}

void Scheduler::admit() {
  const auto is_ready = [](const std::shared_ptr<Ticket>& ticket) {
    const Ticket* first = ticket->job().after.get();
    return first == nullptr || first->phase() == Phase::kDecode || first->phase() == Phase::kEnded;
  };
  while (std::any_of(slots_.begin(), slots_.end(), [](const auto& s) { return !s->busy(); })) {
    std::shared_ptr<Ticket> ticket;
    {
      const std::lock_guard lock(mutex_);
      if (auto next = queue_.pop(is_ready)) ticket = std::move(*next);
    }
    if (ticket == nullptr) return;
    Slot& slot = *choose_slot(slots_, ticket->job().prompt);
    begin(slot, std::move(ticket));
  }
}

void Scheduler::publish() {
  const bool active = std::any_of(slots_.begin(), slots_.end(), [](const auto& s) { return s->busy(); });
  const auto now = Clock::now();
  if (active && now - published_ < kPublishEvery) return;
  published_ = now;
  std::vector<SlotStatus> slots;
  for (const auto& slot : slots_) {
    SlotStatus s;
    s.why = slot->why;
    s.n_tokens = static_cast<int64_t>(slot->session.tokens().size());
    s.n_prompt = s.n_prompt_done = slot->n_prompt;
    s.n_generated = slot->n_generated;
    if (slot->busy()) {
      s.phase = slot->ticket->phase();
      s.n_prompt_done = slot->answer->n_prompt_done();
      s.n_generated = slot->answer->report().n_generated;
    }
    slots.push_back(std::move(s));
  }
  std::optional<ExpertCacheStats> experts = engine_.expert_stats();
  const std::optional<CacheDirStats> cache = engine_.cache_dir_stats(/*wait=*/false);
  const uint64_t reserved = engine_.reserved_bytes();
  const std::lock_guard lock(mutex_);
  status_.slots = std::move(slots);
  status_.experts = std::move(experts);
  status_.cache = cache;
  status_.reserved_bytes = reserved;
}

}  // namespace forebay
