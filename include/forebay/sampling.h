/// How the next token is chosen from logits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace forebay {

/// Changes results, all of it. Applied in the order of the fields.
struct SamplingOptions {
  std::vector<std::pair<int32_t, float>> logit_bias;  // (token id, added to its logit); -inf bans a token
  float repeat_penalty = 1.0f;                        // > 1 divides positive and multiplies negative
                                                      // logits of recent tokens
  float presence_penalty = 0.0f;                      // subtracted once from every recent token
  float frequency_penalty = 0.0f;                     // subtracted per occurrence
  int penalty_last_n = 64;      // how many recent tokens the three look at; -1 = all, 0 = off
  float dry_multiplier = 0.0f;  // > 0: penalise continuing a repeated sequence
                                // by multiplier * base^(length - allowed)
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_last_n = -1;
  std::vector<int32_t> dry_breakers;  // token ids that end a repeated sequence
                                      // (newline, quote, ...)
  int top_k = 0;                      // keep the k largest; 0 = all
  float typical_p = 1.0f;             // locally typical mass; 1 = off
  float top_p = 1.0f;                 // nucleus mass; 1 = off
  float min_p = 0.0f;                 // drop p < min_p * p_max; 0 = off
  float temperature = 1.0f;           // 0 = greedy (lowest id wins ties)
  uint64_t seed = 0;
};

}  // namespace forebay
