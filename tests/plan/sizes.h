// Round numbers of bytes.
#pragma once

#include <cstdint>

namespace forebay {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace forebay
