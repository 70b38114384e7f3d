/// The warm conversations: sessions whose states are kept, because the next turn will extend one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "chat/reasoning_budget.h"
#include "engine/generation.h"
#include "engine/stop_matcher.h"
#include "server/job.h"

namespace forebay {

struct Slot {
  explicit Slot(Session session) : session(std::move(session)) {}

  Session session;
  uint64_t last_used = 0;  // in turns of the scheduler
  // While an answer is made:
  std::shared_ptr<Ticket> ticket;
  std::optional<Generation> answer;
  std::optional<ReasoningBudget> thinking;
  std::optional<StopMatcher> stops;
  std::chrono::steady_clock::time_point first_token{};
  // Of the last answer:
  std::string why;  // what was reused of its prompt
  int64_t n_prompt = 0, n_generated = 0;

  bool busy() const { return ticket != nullptr; }
};

/// The idle slot for a prompt: the one that shares most of its tokens with it; where none shares more than a
/// few, an empty one or the one used longest ago. Null when all are busy.
Slot* choose_slot(std::span<const std::unique_ptr<Slot>> slots, std::span<const int32_t> prompt);

}  // namespace forebay
