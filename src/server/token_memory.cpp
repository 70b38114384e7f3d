#include "server/token_memory.h"

namespace forebay {
namespace {

constexpr size_t kMostEntries = 256, kMostBytes = 64 << 20;

}  // namespace

void TokenMemory::remember(std::string text, std::vector<int32_t> ids) {
  const std::lock_guard lock(mutex_);
  entries_.push_front({std::move(text), std::move(ids)});
  bytes_ += entries_.front().bytes();
  while (entries_.size() > 1 && (entries_.size() > kMostEntries || bytes_ > kMostBytes)) {
    bytes_ -= entries_.back().bytes();
    entries_.pop_back();
  }
}

std::optional<TokenMemory::Known> TokenMemory::find(std::string_view text) {
  const std::lock_guard lock(mutex_);
  auto best = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it)
    if ((best == entries_.end() || it->text.size() > best->text.size()) && text.starts_with(it->text))
      best = it;
  if (best == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, best);
  return Known{best->text.size(), best->ids};
}

}  // namespace forebay
