#include "core/recent_pages.h"

#include "core/page_range.h"

namespace forebay {

void RecentPages::use(std::span<const std::byte> bytes) {
  const PageRange pages = pages_around(reinterpret_cast<uintptr_t>(bytes.data()), bytes.size());
  for (uintptr_t page = pages.first; page < pages.first + pages.length; page += kPageBytes) {
    uses_.push_back({page, ++turn_});
    last_use_[page] = turn_;
  }
}

void RecentPages::trim(FunctionRef<void(std::span<const std::byte>)> give_up) {
  const auto is_last = [this](const Use& use) { return last_use_.at(use.page) == use.turn; };
  while (last_use_.size() > most_) {
    const Use oldest = uses_.front();
    uses_.pop_front();
    const auto at = last_use_.find(oldest.page);
    if (at == last_use_.end() || at->second != oldest.turn) continue;
    last_use_.erase(at);
    give_up({reinterpret_cast<const std::byte*>(oldest.page), kPageBytes});
  }
  // A page used over and over must not make the list grow.
  if (uses_.size() > 4 * most_ + 64)
    std::erase_if(uses_, [&](const Use& use) { return !last_use_.contains(use.page) || !is_last(use); });
}

}  // namespace forebay
