/// The flags that choose the next token. What is not given is the model's own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "cli/flags.h"

namespace forebay::cli {

struct SamplingFlags {
  std::optional<float> temperature, top_p, min_p, typical;
  std::optional<float> repeat_penalty, presence_penalty, frequency_penalty;
  std::optional<float> dry_multiplier, dry_base;
  std::optional<int> top_k, penalty_last_n, dry_allowed_length, dry_last_n;
  std::vector<std::string> logit_bias;    // "ID=BIAS"
  std::vector<std::string> dry_breakers;  // text
  std::optional<uint64_t> seed;

  void declare(FlagTable& flags);
  /// The model's options with the flags' on top, and the flags filled with the result. Without --seed the
  /// seed is a random one.
  /// Errors: kInvalidArgument for a malformed --logit-bias.
  Result<SamplingOptions> resolve(const Engine& engine);
};

/// "1234=-5.5" or "1234=-inf".
Result<std::pair<int32_t, float>> parse_logit_bias(std::string_view text);

}  // namespace forebay::cli
