#include "reuse/find_edit.h"

#include <algorithm>

namespace forebay {

std::optional<FoundEdit> find_edit(std::span<const int32_t> before, std::span<const int32_t> after,
                                   int64_t min_suffix) {
  const auto n_common =
      std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first - before.begin();
  const auto n_before = static_cast<int64_t>(before.size());
  // The last token of the new prompt is not moved: its logits are wanted.
  const int64_t n_after = static_cast<int64_t>(after.size()) - 1;
  if (n_before - n_common < min_suffix || n_after - n_common < min_suffix) return std::nullopt;

  // Where the last tokens of C stand, C ends.
  const std::span<const int32_t> needle = before.last(static_cast<size_t>(std::min<int64_t>(min_suffix, 16)));
  std::optional<FoundEdit> best;
  const auto end = after.begin() + n_after;
  for (auto at = after.begin() + n_common;; ++at) {
    at = std::search(at, end, needle.begin(), needle.end());
    if (at == end) break;
    const int64_t c_end = at - after.begin() + static_cast<int64_t>(needle.size());
    const int64_t most = std::min(n_before, c_end) - n_common;
    int64_t n = 0;
    while (n < most && before[n_before - 1 - n] == after[c_end - 1 - n]) ++n;
    if (n >= min_suffix && (!best || n > best->n_suffix))
      best = FoundEdit{n_common, n_before - n - n_common, c_end - n - n_common, n};
  }
  return best;
}

}  // namespace forebay
