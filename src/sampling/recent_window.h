/// The part of the history that a penalty looks at.
#pragma once

#include <cstdint>
#include <span>

namespace forebay {

/// The last n tokens: -1 = all, 0 = none.
inline std::span<const int32_t> recent_window(std::span<const int32_t> recent, int last_n) {
  if (last_n < 0 || static_cast<size_t>(last_n) >= recent.size()) return recent;
  return recent.last(static_cast<size_t>(last_n));
}

inline bool in_vocabulary(int32_t id, std::span<const float> logits) {
  return id >= 0 && static_cast<size_t>(id) < logits.size();
}

}  // namespace forebay
