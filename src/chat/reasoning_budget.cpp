#include "chat/reasoning_budget.h"

#include <algorithm>

#include <fmt/format.h>

namespace forebay {
namespace {

constexpr int64_t kMaxGrace = 64;

/// A good place to stop: after a line, or after a sentence.
bool is_pause(std::string_view bytes) {
  const size_t last = bytes.find_last_not_of(' ');
  if (last == std::string_view::npos) return false;
  const char c = bytes[last];
  return c == '\n' || c == '.' || c == '!' || c == '?' || bytes.ends_with("\u3002");
}

}  // namespace

Result<ReasoningEffort> parse_reasoning_effort(std::string_view name) {
  if (name == "none") return ReasoningEffort::kNone;
  if (name == "minimal") return ReasoningEffort::kMinimal;
  if (name == "low") return ReasoningEffort::kLow;
  if (name == "medium") return ReasoningEffort::kMedium;
  if (name == "high") return ReasoningEffort::kHigh;
  return Error{Code::kInvalidArgument,
               fmt::format("'{}', expected none, minimal, low, medium or high", name.substr(0, 40))};
}

ReasoningPlan plan_reasoning(const ReasoningRequest& request) {
  ReasoningPlan plan{.enable_thinking = request.on};
  if (request.effort) {
    const bool off = *request.effort == ReasoningEffort::kNone;
    if (!request.on) plan.enable_thinking = !off;
    switch (*request.effort) {
      case ReasoningEffort::kNone:
      case ReasoningEffort::kHigh:
        break;
      case ReasoningEffort::kMinimal:
        plan.budget_tokens = 128;
        break;
      case ReasoningEffort::kLow:
        plan.budget_tokens = 512;
        break;
      case ReasoningEffort::kMedium:
        plan.budget_tokens = 2048;
        break;
    }
  }
  if (request.budget_tokens) plan.budget_tokens = std::max<int64_t>(*request.budget_tokens, -1);
  if (plan.budget_tokens == 0) plan.enable_thinking = false;
  return plan;
}

std::string without_thinking(std::string prompt) {
  const size_t open = prompt.rfind(kThinkOpen);
  if (open == std::string::npos) return prompt;
  const size_t close = prompt.rfind(kThinkClose);
  if (close != std::string::npos && close > open) return prompt;
  prompt += prompt.ends_with('\n') ? "\n" : "\n\n";
  prompt += kThinkClose;
  return prompt += "\n\n";
}

std::string_view wrap_up_text() {
  return "\n\nThis has to be enough thought; here is the answer.\n</think>\n\n";
}

ReasoningBudget::ReasoningBudget(int64_t budget_tokens, std::vector<int32_t> wrap_up,
                                 bool starts_in_reasoning)
    : budget_(budget_tokens),
      wrap_up_(std::move(wrap_up)),
      reasoning_(starts_in_reasoning),
      may_open_(!starts_in_reasoning) {}

std::optional<int32_t> ReasoningBudget::forced() const {
  if (next_ > 0) return next_ < wrap_up_.size() ? std::optional(wrap_up_[next_]) : std::nullopt;
  if (!reasoning_ || budget_ < 0 || n_reasoning_ < budget_ || wrap_up_.empty()) return std::nullopt;
  const int64_t grace = std::min(budget_ / 10, kMaxGrace);
  if (!at_pause_ && n_reasoning_ < budget_ + grace) return std::nullopt;
  return wrap_up_[0];
}

void ReasoningBudget::accept(int32_t token, std::string_view bytes) {
  const bool expected = forced() == token;
  if (expected) ++next_;
  tail_ += bytes;
  if (reasoning_) {
    ++n_reasoning_;
    at_pause_ = is_pause(bytes);
    if (tail_.find(kThinkClose) != std::string::npos) {
      --n_reasoning_;  // the tag is no thought
      reasoning_ = false;
      tail_.clear();
      return;
    }
  } else if (may_open_) {
    const size_t text = tail_.find_first_not_of(" \n\t\r");
    if (text != std::string::npos) {
      const std::string_view rest = std::string_view(tail_).substr(text);
      if (rest.starts_with(kThinkOpen)) {
        reasoning_ = true;
        may_open_ = false;
        tail_.clear();
        return;
      }
      if (!kThinkOpen.starts_with(rest)) may_open_ = false;
    }
    return;
  }
  if (tail_.size() > kThinkClose.size()) tail_.erase(0, tail_.size() - kThinkClose.size());
}

}  // namespace forebay
