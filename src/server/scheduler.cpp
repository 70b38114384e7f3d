#include "server/scheduler.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/batch.h"

namespace forebay {
namespace {

/// How long the thread sleeps at most: a wake-up that was lost costs no more.
constexpr std::chrono::milliseconds kLongestSleep{200};
constexpr size_t kKeptFirstTokens = 4096;
constexpr std::chrono::milliseconds kPublishEvery{50};

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

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
  work_.notify_one();
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
  work_.notify_one();
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
  work_.notify_one();
  std::unique_lock lock(task->mutex);
  if (task->done.wait_for(lock, most, [&] { return task->result.has_value(); })) return *task->result;
  task->abandoned = true;
  return Error{Code::kIo, fmt::format("engine: busy for {} ms", most.count())};
}

SchedulerStatus Scheduler::status() const {
  const std::lock_guard lock(mutex_);
  SchedulerStatus status = status_;
  status.n_queued = queue_.size();
  if (step_began_ != Clock::time_point()) status.step_seconds = seconds_between(step_began_, Clock::now());
  return status;
}

void Scheduler::loop() {
  while (wait_for_work()) {
    try {
      run_tasks();
      drop_cancelled();
      admit();
      step();
      publish();
    } catch (const std::exception& error) {
      fail_all(error.what());
    }
  }
  std::vector<std::shared_ptr<Task>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(tasks_);
  }
  for (const auto& task : left) task->finish(Error{Code::kCancelled, "the server is shutting down"});
}

/// False when it is time to end: stopping, and nothing is active.
bool Scheduler::wait_for_work() {
  const bool active = std::any_of(slots_.begin(), slots_.end(), [](const auto& s) { return s->busy(); });
  std::vector<std::shared_ptr<Ticket>> refused;
  bool goes_on = true, cancel_all = false;
  {
    std::unique_lock lock(mutex_);
    if (!active)
      work_.wait_for(lock, kLongestSleep, [&] { return stopping_ || queue_.size() > 0 || !tasks_.empty(); });
    if (stopping_) {
      while (auto ticket = queue_.pop()) refused.push_back(std::move(*ticket));
      cancel_all = Clock::now() >= stop_at_;
      goes_on = active && !cancel_all;
    }
  }
  for (const auto& ticket : refused) ticket->finish(Error{Code::kCancelled, "the server is shutting down"});
  if (cancel_all)
    for (const auto& slot : slots_)
      if (slot->busy()) cancel(*slot);
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
  while (std::any_of(slots_.begin(), slots_.end(), [](const auto& s) { return !s->busy(); })) {
    std::shared_ptr<Ticket> ticket;
    {
      const std::lock_guard lock(mutex_);
      if (auto next = queue_.pop()) ticket = std::move(*next);
    }
    if (ticket == nullptr) return;
    Slot& slot = *choose_slot(slots_, ticket->job().prompt);
    begin(slot, std::move(ticket));
  }
}

void Scheduler::begin(Slot& slot, std::shared_ptr<Ticket> ticket) {
  const Job& job = ticket->job();
  slot.last_used = ++turn_;
  slot.ticket = std::move(ticket);
  slot.thinking.emplace(job.thinking_budget, job.wrap_up, job.starts_thinking);
  slot.stops.emplace(job.stop);
  slot.first_token = {};
  Result<Generation> answer = Generation::start(slot.session, job.prompt, job.options);
  if (!answer) return finish(slot, std::move(answer).error());
  slot.answer.emplace(std::move(answer).value());
  const SyncReport& prompt = slot.answer->report().prompt;
  slot.why = prompt.why;
  slot.ticket->begin(prompt);
  const std::lock_guard lock(mutex_);
  status_.stats.n_prompt += prompt.n_prompt;
  status_.stats.n_reused += prompt.n_reused;
}

/// Every decoding slot's token first, then parts of prompts, taking turns.
std::vector<Feed> Scheduler::fill_window(std::vector<Slot*>& taking) {
  std::vector<Feed> feeds;
  std::vector<Slot*> prompts;
  int64_t room = engine_.info().chunk;
  for (const auto& slot : slots_) {
    if (!slot->busy()) continue;
    if (slot->answer->in_prompt()) {
      prompts.push_back(slot.get());
      continue;
    }
    const Feed next = slot->answer->next(1);
    const auto n = static_cast<int64_t>(next.tokens.size());
    if (n > room) continue;
    room -= n;
    taking.push_back(slot.get());
    if (n > 0) feeds.push_back(next);
  }
  if (!feeds.empty()) room = std::min(room, options_.prompt_share);
  if (!prompts.empty())
    std::rotate(prompts.begin(), prompts.begin() + static_cast<int64_t>(next_prompt_++ % prompts.size()),
                prompts.end());
  for (Slot* slot : prompts) {
    if (room == 0) break;
    const Feed next = slot->answer->next(room);
    room -= static_cast<int64_t>(next.tokens.size());
    feeds.push_back(next);
    taking.push_back(slot);
  }
  return feeds;
}

void Scheduler::step() {
  std::vector<Slot*> taking;
  const std::vector<Feed> feeds = fill_window(taking);
  if (taking.empty()) return;
  const auto began = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    step_began_ = began;
  }
  if (options_.before_step) options_.before_step();
  int64_t n_rows = 0, n_prompt_rows = 0;
  for (const Feed& f : feeds) {
    n_rows += static_cast<int64_t>(f.tokens.size());
    if (f.n_prompt_left >= 0) n_prompt_rows += static_cast<int64_t>(f.tokens.size());
  }
  const Result<void> fed = feeds.empty() ? Result<void>() : feed(feeds);
  {
    const std::lock_guard lock(mutex_);
    step_began_ = {};
    SchedulerStats& stats = status_.stats;
    stats.n_windows += !feeds.empty();
    stats.n_window_rows += n_rows;
    stats.n_prefilled += n_prompt_rows;
    (n_prompt_rows > 0 ? stats.prompt_seconds : stats.decode_seconds) += seconds_between(began, Clock::now());
  }
  for (Slot* slot : taking) {
    if (!fed)
      finish(*slot, fed.error());
    else
      take(*slot);
  }
}

void Scheduler::take(Slot& slot) {
  Generation& answer = *slot.answer;
  ReasoningBudget& thinking = *slot.thinking;
  if (!answer.in_prompt()) {
    slot.ticket->set_phase(Phase::kDecode);
    if (const std::optional<int32_t> id = thinking.forced()) answer.force({&*id, 1});
  }
  const int64_t n_before = answer.report().n_generated;
  const Result<void> taken = answer.take([&](const GeneratedToken& token) { return hear(slot, token); });
  {
    const std::lock_guard lock(mutex_);
    status_.stats.n_generated += answer.report().n_generated - n_before;
  }
  if (!taken) return finish(slot, taken.error());
  if (answer.done()) finish(slot, end_of(slot));
}

/// Passes a token on. Stop strings end the content only; what might be the beginning of one waits.
bool Scheduler::hear(Slot& slot, const GeneratedToken& token) {
  if (slot.first_token == Clock::time_point()) slot.first_token = Clock::now();
  AnswerToken out;
  out.id = token.id;
  out.log_prob = token.log_prob;
  out.top.assign(token.top.begin(), token.top.end());
  out.reasoning = slot.thinking->in_reasoning();
  if (token.id >= 0)
    slot.thinking->accept(token.id, engine_.tokenizer()->token_bytes(token.id, /*specials=*/true));
  out.text = out.reasoning ? std::string(token.text) : slot.stops->push(token.text);
  slot.ticket->push(std::move(out));
  return !slot.stops->matched();
}

AnswerEnd Scheduler::end_of(Slot& slot) const {
  if (std::string rest = slot.stops->finish(); !rest.empty()) {
    AnswerToken out;
    out.text = std::move(rest);
    slot.ticket->push(std::move(out));
  }
  AnswerEnd end;
  end.report = slot.answer->report();
  if (slot.stops->matched()) end.report.reason = FinishReason::kStopString;
  end.n_reasoning = slot.thinking->n_reasoning_tokens();
  end.budget_reached = slot.thinking->wrapped_up();
  end.stop = slot.stops->match();
  return end;
}

void Scheduler::cancel(Slot& slot) {
  slot.answer->cancel([&](const GeneratedToken& token) { return hear(slot, token); });
  finish(slot, end_of(slot));
}

/// Something below threw: what the states hold is not known.
void Scheduler::fail_all(const std::string& message) {
  for (const auto& slot : slots_) {
    if (slot->busy()) finish(*slot, Error{Code::kInternal, "engine: " + message});
    slot->session.reset();
  }
  const std::lock_guard lock(mutex_);
  step_began_ = {};
}

void Scheduler::finish(Slot& slot, Result<AnswerEnd> end) {
  {
    const std::lock_guard lock(mutex_);
    SchedulerStats& stats = status_.stats;
    if (!end) {
      ++stats.n_failed;
    } else {
      const bool cancelled = end->report.reason == FinishReason::kCancelled;
      ++(cancelled ? stats.n_cancelled : stats.n_finished);
      if (slot.first_token != Clock::time_point()) {
        auto& kept = stats.first_token_seconds;
        if (kept.size() == kKeptFirstTokens) kept.erase(kept.begin());
        kept.push_back(seconds_between(slot.ticket->submitted(), slot.first_token));
      }
    }
  }
  const bool whole = end && end->report.reason != FinishReason::kCancelled;
  slot.ticket->finish(std::move(end));
  slot.ticket.reset();
  slot.answer.reset();
  if (whole) slot.session.end_turn();
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
    if (slot->busy()) {
      const GenerateReport& report = slot->answer->report();
      s.phase = slot->ticket->phase();
      s.n_prompt = report.prompt.n_prompt;
      s.n_prompt_done = slot->answer->n_prompt_done();
      s.n_generated = report.n_generated;
    }
    slots.push_back(std::move(s));
  }
  std::optional<ExpertCacheStats> experts = engine_.expert_stats();
  const uint64_t reserved = engine_.reserved_bytes();
  const std::lock_guard lock(mutex_);
  status_.slots = std::move(slots);
  status_.experts = std::move(experts);
  status_.reserved_bytes = reserved;
}

}  // namespace forebay
