#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "sampling/sampling.h"

namespace forebay {
namespace {

template <typename Value>
Result<void> require(bool good, std::string_view field, Value value, std::string_view range) {
  if (good) return {};
  return Error{Code::kInvalidArgument, fmt::format("{} is {}, wanted {}", field, value, range)};
}

Result<void> require_between(std::string_view field, float value, float lowest, float highest) {
  return require(value >= lowest && value <= highest, field, value, fmt::format("{} to {}", lowest, highest));
}

Result<void> require_at_least(std::string_view field, int value, int lowest) {
  return require(value >= lowest, field, value, fmt::format("{} or more", lowest));
}

Result<void> require_token(std::string_view field, int32_t id, int n_vocab) {
  return require(id >= 0 && id < n_vocab, field, id, fmt::format("a token id below {}", n_vocab));
}

}  // namespace

Result<void> validate(const SamplingOptions& o, int n_vocab) {
  for (const auto& [id, bias] : o.logit_bias) {
    TRY(require_token("logit_bias token", id, n_vocab));
    // +inf would make every distribution empty: infinite logits are not candidates.
    TRY(require(std::isfinite(bias) || bias == -INFINITY, fmt::format("logit_bias of token {}", id), bias,
                "a finite number or -inf"));
  }
  TRY(require(std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0, "repeat_penalty", o.repeat_penalty,
              "a finite number above 0"));
  TRY(require(std::isfinite(o.presence_penalty), "presence_penalty", o.presence_penalty, "a finite number"));
  TRY(require(std::isfinite(o.frequency_penalty), "frequency_penalty", o.frequency_penalty,
              "a finite number"));
  TRY(require_at_least("penalty_last_n", o.penalty_last_n, -1));
  TRY(require(std::isfinite(o.dry_multiplier) && o.dry_multiplier >= 0, "dry_multiplier", o.dry_multiplier,
              "a finite number, 0 or more"));
  TRY(require(std::isfinite(o.dry_base) && o.dry_base >= 1, "dry_base", o.dry_base,
              "a finite number, 1 or more"));
  TRY(require_at_least("dry_allowed_length", o.dry_allowed_length, 1));
  TRY(require_at_least("dry_last_n", o.dry_last_n, -1));
  for (const int32_t id : o.dry_breakers) TRY(require_token("dry_breakers token", id, n_vocab));
  TRY(require_at_least("top_k", o.top_k, 0));
  TRY(require(o.typical_p > 0 && o.typical_p <= 1, "typical_p", o.typical_p, "above 0, at most 1"));
  TRY(require_between("top_p", o.top_p, 0, 1));
  TRY(require_between("min_p", o.min_p, 0, 1));
  TRY(require(std::isfinite(o.temperature) && o.temperature >= 0, "temperature", o.temperature,
              "a finite number, 0 or more"));
  return {};
}

}  // namespace forebay
