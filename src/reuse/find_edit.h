/// Finds the edit that made one prompt out of another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace forebay {

/// [A B C] in the old tokens, [A B' C D] in the new ones.
struct FoundEdit {
  int64_t n_prefix = 0;    // |A|
  int64_t n_removed = 0;   // |B|
  int64_t n_inserted = 0;  // |B'|
  int64_t n_suffix = 0;    // |C|, to the end of the old tokens
};

/// The edit with the longest C that ends the old tokens, stands in the new ones and is followed by at least
/// one more there. Empty when no C of at least `min_suffix` (1 or more) is found, or nothing parts. A is the
/// whole common beginning.
std::optional<FoundEdit> find_edit(std::span<const int32_t> before, std::span<const int32_t> after,
                                   int64_t min_suffix);

}  // namespace forebay
