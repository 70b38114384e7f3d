/// Which pages of a mapping were used last, so that those before them can be given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

#include "core/function_ref.h"

namespace forebay {

/// Confined. Knows addresses, touches no memory.
class RecentPages {
 public:
  explicit RecentPages(size_t most) : most_(most) {}

  /// The pages around `bytes` are used now.
  void use(std::span<const std::byte> bytes);
  /// Gives up those used longest ago until at most `most` are left.
  void trim(FunctionRef<void(std::span<const std::byte> page)> give_up);
  size_t size() const { return last_use_.size(); }

 private:
  struct Use {
    uintptr_t page;
    uint64_t turn;
  };
  size_t most_;
  uint64_t turn_ = 0;
  std::deque<Use> uses_;  // oldest first; one that is not its page's last counts for nothing
  std::unordered_map<uintptr_t, uint64_t> last_use_;
};

}  // namespace forebay
