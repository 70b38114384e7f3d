#include "core/recent_pages.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/page_range.h"

namespace forebay {

RecentPages::Index& RecentPages::bucket_of(uintptr_t address) {
  // Multiplied, neighbours fall far apart; the upper bits depend on all lower ones.
  const uint64_t mixed = address / kPageBytes * 0x9e37'79b9'7f4a'7c15u;
  return buckets_[(mixed >> 32) % buckets_.size()];
}

void RecentPages::append(Index at) {
  pages_[at].older = newest_;
  pages_[at].newer = kNone;
  (newest_ == kNone ? oldest_ : pages_[newest_].newer) = at;
  newest_ = at;
}

void RecentPages::unlink(Index at) {
  const Page& page = pages_[at];
  (page.older == kNone ? oldest_ : pages_[page.older].newer) = page.newer;
  (page.newer == kNone ? newest_ : pages_[page.newer].older) = page.older;
}

void RecentPages::use(std::span<const std::byte> bytes) {
  if (buckets_.empty()) {
    buckets_.assign(std::bit_ceil(std::max<size_t>(most_, 16)), kNone);
    pages_.reserve(most_ + 1024);
  }
  const PageRange range = pages_around(reinterpret_cast<uintptr_t>(bytes.data()), bytes.size());
  for (uintptr_t address = range.first; address < range.first + range.length; address += kPageBytes) {
    Index at = bucket_of(address);
    while (at != kNone && pages_[at].address != address) at = pages_[at].next;
    if (at != kNone) {
      unlink(at);
      append(at);
      continue;
    }
    if (unused_ == kNone) {
      unused_ = static_cast<Index>(pages_.size());
      pages_.emplace_back();
    }
    at = std::exchange(unused_, pages_[unused_].next);
    pages_[at].address = address;
    pages_[at].next = std::exchange(bucket_of(address), at);
    append(at);
    ++size_;
  }
}

void RecentPages::trim(FunctionRef<void(std::span<const std::byte>)> give_up) {
  while (size_ > most_) {
    const Index at = oldest_;
    const uintptr_t address = pages_[at].address;
    Index* link = &bucket_of(address);
    while (*link != at) link = &pages_[*link].next;
    *link = pages_[at].next;
    unlink(at);
    pages_[at].next = std::exchange(unused_, at);
    --size_;
    give_up({reinterpret_cast<const std::byte*>(address), kPageBytes});
  }
}

}  // namespace forebay
