#include "core/hash.h"

#include <xxhash.h>

namespace forebay {

uint64_t fast_checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace forebay
