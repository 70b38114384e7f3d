#include "server/job.h"

namespace forebay {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::kQueued:
      return "queued";
    case Phase::kPrompt:
      return "prompt";
    case Phase::kDecode:
      return "decode";
    case Phase::kEnded:
      return "ended";
  }
  return "unknown";
}

Ticket::Update Ticket::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return !news_.tokens.empty() || news_.end; });
  Update update = news_;
  news_.tokens.clear();
  return update;
}

void Ticket::begin(const SyncReport& prompt) {
  const std::lock_guard lock(mutex_);
  news_.prompt = prompt;
  phase_.store(Phase::kPrompt);
}

void Ticket::push(AnswerToken token) {
  {
    const std::lock_guard lock(mutex_);
    news_.tokens.push_back(std::move(token));
  }
  changed_.notify_one();
}

void Ticket::finish(Result<AnswerEnd> end) {
  {
    const std::lock_guard lock(mutex_);
    phase_.store(Phase::kEnded);
    if (end) news_.prompt = end->report.prompt;
    news_.end = std::move(end);
  }
  changed_.notify_one();
}

}  // namespace forebay
