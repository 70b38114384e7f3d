/// One token from logits, with its log-prob under the same numbers: temperature 1, the whole vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forebay::train {

struct DrawnToken {
  int32_t id = -1;
  float log_prob = 0;  // at most 0, never NaN for finite logits
};

/// The token at cumulative mass u in [0, 1), in order of ids; sums in f64. `scratch` is any vector.
DrawnToken draw_token(std::span<const float> logits, double u, std::vector<double>& scratch);
/// The likeliest token, the lowest id of equals.
DrawnToken likeliest_token(std::span<const float> logits);
/// That token, with the log-prob that drawing it would have given, to the bit. `id` is below logits.size().
DrawnToken given_token(std::span<const float> logits, int32_t id);

}  // namespace forebay::train
