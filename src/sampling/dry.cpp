/// "Don't repeat yourself": penalises the token that would continue a sequence already seen.
#include <algorithm>
#include <limits>

#include "sampling/recent_window.h"
#include "sampling/sampling.h"

namespace forebay {
namespace {

/// base^exponent by squaring: products only, so the bits are the same everywhere.
double power(double base, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

/// z[k] = length of the longest common prefix of r and r[k..], where r is `tokens` read backwards: how many
/// of the last tokens also end at the token k places before the last. z[0] is left 0.
void match_lengths(std::span<const int32_t> tokens, std::vector<int32_t>& z) {
  const auto n = static_cast<int32_t>(tokens.size());
  const auto reversed = [&](int32_t i) { return tokens[n - 1 - i]; };
  // One longer with every token: not to be allocated again each time.
  if (z.capacity() < tokens.size()) z.reserve(std::max<size_t>(1024, 2 * tokens.size()));
  z.assign(tokens.size(), 0);
  int32_t left = 0, right = 0;  // [left, right) is the match that reaches furthest so far
  for (int32_t k = 1; k < n; ++k) {
    if (k < right) z[k] = std::min(right - k, z[k - left]);
    while (k + z[k] < n && reversed(z[k]) == reversed(k + z[k])) ++z[k];
    if (k + z[k] > right) {
      left = k;
      right = k + z[k];
    }
  }
}

}  // namespace

void apply_dry(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options,
               SamplingScratch& scratch) {
  if (options.dry_multiplier <= 0) return;
  const auto window = recent_window(recent, options.dry_last_n);
  const auto is_breaker = [&](int32_t id) { return std::ranges::count(options.dry_breakers, id) > 0; };

  // No match can be longer than the stretch since the last breaker.
  int32_t longest = 0;
  const auto n = static_cast<int32_t>(window.size());
  while (longest < n && !is_breaker(window[n - 1 - longest])) ++longest;
  if (longest < options.dry_allowed_length) return;

  match_lengths(window, scratch.matches);
  std::vector<int32_t>& length_of = scratch.per_token;
  length_of.resize(logits.size());
  for (int32_t k = 1; k < n; ++k) {
    const int32_t next = window[n - k];  // what followed this earlier occurrence
    const int32_t length = std::min(scratch.matches[k], longest);
    if (length >= options.dry_allowed_length && in_vocabulary(next, logits))
      length_of[next] = std::max(length_of[next], length);
  }
  // Finite: a penalty never bans, so it cannot leave a distribution empty.
  constexpr double kLargest = std::numeric_limits<float>::max() / 4;
  for (int32_t k = 1; k < n; ++k) {
    const int32_t next = window[n - k];
    if (!in_vocabulary(next, logits) || length_of[next] == 0) continue;
    const double penalty =
        options.dry_multiplier * power(options.dry_base, length_of[next] - options.dry_allowed_length);
    length_of[next] = 0;
    if (!is_breaker(next)) logits[next] -= static_cast<float>(std::min(penalty, kLargest));
  }
}

void apply_dry(std::span<float> logits, std::span<const int32_t> recent, const SamplingOptions& options) {
  SamplingScratch scratch;
  apply_dry(logits, recent, options, scratch);
}

}  // namespace forebay
