/// How long a model may think: from what a request asks for to tokens that end the thinking in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "chat/chat_style.h"

namespace forebay {

enum class ReasoningEffort { kNone, kMinimal, kLow, kMedium, kHigh };
/// Errors: kInvalidArgument, listing the five names.
Result<ReasoningEffort> parse_reasoning_effort(std::string_view name);

struct ReasoningRequest {
  std::optional<bool> on = std::nullopt;  // absent: the template decides
  std::optional<ReasoningEffort> effort = std::nullopt;
  std::optional<int64_t> budget_tokens = std::nullopt;  // overrules the effort's
};

/// Nothing of this stands in the prompt before its end, so that a change of mind keeps the prefix.
struct ReasoningPlan {
  std::optional<bool> enable_thinking = std::nullopt;  // for the template
  int64_t budget_tokens = -1;                          // -1: no limit
};
/// Effort is a budget: minimal 128 tokens, low 512, medium 2048, high without limit; none is off, as is a
/// budget of 0.
ReasoningPlan plan_reasoning(const ReasoningRequest& request);

/// Closes the <think> that a template leaves open although thinking is off; other prompts stay.
std::string without_thinking(std::string prompt);

/// What is put into a model's mouth when its budget is used up; ends with </think>.
std::string_view wrap_up_text();

/// Follows an answer and says which token comes next when its thinking has to end. Over the budget it waits
/// for the end of a sentence or line for a tenth of the budget, at most 64 tokens, then forces the wrap-up.
/// Confined.
class ReasoningBudget {
 public:
  /// `budget_tokens` -1: never forces anything. `wrap_up`: tokens of wrap_up_text().
  ReasoningBudget(int64_t budget_tokens, std::vector<int32_t> wrap_up, bool starts_in_reasoning);

  /// To be taken instead of a sampled one. The caller passes it to accept() as well.
  std::optional<int32_t> forced() const;
  /// `bytes`: of the token, control tokens literal.
  void accept(int32_t token, std::string_view bytes);

  /// Tokens between <think> and </think>, with the wrap-up.
  int64_t n_reasoning_tokens() const { return n_reasoning_; }
  bool wrapped_up() const { return next_ > 0; }
  bool in_reasoning() const { return reasoning_; }

 private:
  const int64_t budget_;
  const std::vector<int32_t> wrap_up_;
  bool reasoning_;
  bool may_open_;
  bool at_pause_ = true;
  std::string tail_;  // the last bytes, where a tag may begin
  int64_t n_reasoning_ = 0;
  size_t next_ = 0;  // of wrap_up_
};

}  // namespace forebay
