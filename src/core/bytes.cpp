#include "core/bytes.h"

namespace forebay {

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed) {
  for (const std::byte b : bytes) seed = (seed ^ static_cast<uint64_t>(b)) * 0x100000001b3;
  return seed;
}

}  // namespace forebay
