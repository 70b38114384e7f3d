#include "core/mapped_memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

#include "core/page_range.h"

namespace forebay {

void advise(std::span<const std::byte> bytes, MapAdvice advice) {
  if (bytes.empty()) return;
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const PageRange pages = pages_around(first, bytes.size());
  auto* at = reinterpret_cast<void*>(pages.first);
  switch (advice) {
    case MapAdvice::kRandom:
      ::madvise(at, pages.length, MADV_RANDOM);
      return;
    case MapAdvice::kWillNeed:
      ::madvise(at, pages.length, MADV_WILLNEED);
      return;
    case MapAdvice::kPopulate:
#ifdef MADV_POPULATE_READ
      if (::madvise(at, pages.length, MADV_POPULATE_READ) == 0) return;
#endif
      ::madvise(at, pages.length, MADV_WILLNEED);  // an older kernel
      return;
    case MapAdvice::kGiveUp:
#ifdef MADV_PAGEOUT
      ::madvise(at, pages.length, MADV_PAGEOUT);
#endif
      return;
  }
}

bool mostly_in_memory(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  const PageRange pages = pages_around(reinterpret_cast<uintptr_t>(bytes.data()), bytes.size());
  std::vector<unsigned char> in(pages.length / kPageBytes);
  if (::mincore(reinterpret_cast<void*>(pages.first), pages.length, in.data()) != 0) return false;
  const auto n = std::count_if(in.begin(), in.end(), [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<size_t>(2 * n) > in.size();
}

}  // namespace forebay
