/// A fast checksum, for bytes by the gigabyte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

/// XXH3, 64 bits. For accidents, not for malice. Source: the xxHash specification.
uint64_t fast_checksum(std::span<const std::byte> bytes);

}  // namespace forebay
