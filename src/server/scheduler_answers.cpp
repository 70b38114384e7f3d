// What the scheduler does with the answers that are made: begin, one window, end.
#include <algorithm>

#include <fmt/format.h>

#include "engine/batch.h"
#include "engine/copy_prefix.h"
#include "server/scheduler.h"

namespace forebay {
namespace {

constexpr size_t kKeptFirstTokens = 4096;

}  // namespace

void Scheduler::begin(Slot& slot, std::shared_ptr<Ticket> ticket) {
  const Job& job = ticket->job();
  slot.last_used = ++turn_;
  slot.ticket = std::move(ticket);
  slot.thinking.emplace(job.thinking_budget, job.wrap_up, job.starts_thinking);
  slot.stops.emplace(job.stop);
  slot.first_token = {};
  const int64_t n_copied = copy_from_others(slot);
  Result<Generation> answer = Generation::start(slot.session, job.prompt, job.options);
  if (!answer) return finish(slot, std::move(answer).error());
  slot.answer.emplace(std::move(answer).value());
  const SyncReport& prompt = slot.answer->report().prompt;
  slot.n_prompt = prompt.n_prompt;
  slot.n_generated = 0;
  slot.why = prompt.why;
  if (n_copied > 0) slot.why += fmt::format(" (copied {} tokens from another conversation)", n_copied);
  slot.ticket->begin(prompt);
  const std::lock_guard lock(mutex_);
  status_.stats.n_prompt += prompt.n_prompt;
  status_.stats.n_reused += prompt.n_reused;
  status_.stats.n_loaded += prompt.n_loaded;
}

/// What another conversation has read of this prompt: the other choices of one request, a system prompt.
int64_t Scheduler::copy_from_others(Slot& slot) {
  int64_t n_copied = 0;
  for (const auto& other : slots_)
    if (other.get() != &slot)
      n_copied = std::max(n_copied, copy_prefix(slot.session, other->session, slot.ticket->job().prompt));
  return n_copied;
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
  if (options_.before_step) options_.before_step();
  int64_t n_rows = 0, n_prompt_rows = 0;
  for (const Feed& f : feeds) {
    n_rows += static_cast<int64_t>(f.tokens.size());
    if (f.n_prompt_left >= 0) n_prompt_rows += static_cast<int64_t>(f.tokens.size());
  }
  const Result<void> fed = feeds.empty() ? Result<void>() : feed(feeds);
  {
    const std::lock_guard lock(mutex_);
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
  if (slot.answer) slot.n_generated = slot.answer->report().n_generated;
  slot.ticket->finish(std::move(end));
  slot.ticket.reset();
  slot.answer.reset();
}

}  // namespace forebay
