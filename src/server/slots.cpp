#include "server/slots.h"

#include <algorithm>

namespace forebay {
namespace {

/// Fewer tokens in common than this are a coincidence of templates, no conversation that goes on.
constexpr int64_t kWorthKeeping = 16;

int64_t n_common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

Slot* choose_slot(std::span<const std::unique_ptr<Slot>> slots, std::span<const int32_t> prompt) {
  Slot *best = nullptr, *oldest = nullptr;
  int64_t most = -1;
  for (const std::unique_ptr<Slot>& slot : slots) {
    if (slot->busy()) continue;
    const int64_t common = n_common(slot->session.tokens(), prompt);
    if (common > most || (common == most && slot->last_used < best->last_used)) {
      best = slot.get();
      most = common;
    }
    if (oldest == nullptr || slot->last_used < oldest->last_used) oldest = slot.get();
  }
  if (best == nullptr) return nullptr;
  const auto n_live = static_cast<int64_t>(best->session.tokens().size());
  // Another conversation with the same beginning keeps its state while there is room.
  const bool goes_on = most >= kWorthKeeping && 2 * most >= n_live;
  return goes_on ? best : oldest;
}

}  // namespace forebay
