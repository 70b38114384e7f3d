/// Whole pages around a range of a file: what a direct read moves.
#pragma once

#include <cstdint>

#include "forebay/result.h"

namespace forebay {

class ReadableFile;

inline constexpr uint64_t kPageBytes = 4096;

struct PageRange {
  uint64_t first = 0;   // offset in the file
  uint64_t length = 0;  // whole pages
  uint64_t skip = 0;    // from there to what was asked for
};

constexpr PageRange pages_around(uint64_t offset, uint64_t n) {
  const uint64_t skip = offset % kPageBytes;
  return {offset - skip, (skip + n + kPageBytes - 1) / kPageBytes * kPageBytes, skip};
}

/// kIo: the file ended `got` bytes into a read.
Error short_read(const ReadableFile& file, uint64_t offset, uint64_t wanted, uint64_t got);

}  // namespace forebay
