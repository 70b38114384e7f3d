/// Which pages of a mapping were used last, so that those before them can be given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"

namespace forebay {

/// Confined. Knows addresses, touches no memory. Allocates at its first use, then only for many more pages
/// than `most` only.
class RecentPages {
 public:
  explicit RecentPages(size_t most) : most_(most) {}

  /// The pages around `bytes` are used now.
  void use(std::span<const std::byte> bytes);
  /// Gives up those used longest ago until at most `most` are left.
  void trim(FunctionRef<void(std::span<const std::byte> page)> give_up);
  size_t size() const { return size_; }

 private:
  using Index = uint32_t;
  static constexpr Index kNone = UINT32_MAX;
  /// In a list by age and in its bucket's list, or in the list of unused ones by `next`.
  struct Page {
    uintptr_t address = 0;
    Index older = kNone, newer = kNone;
    Index next = kNone;  // of the same bucket
  };

  Index& bucket_of(uintptr_t address);
  void append(Index at);  // as the newest
  void unlink(Index at);  // from the list by age

  size_t most_;
  size_t size_ = 0;
  std::vector<Page> pages_;
  std::vector<Index> buckets_;
  Index oldest_ = kNone, newest_ = kNone, unused_ = kNone;
};

}  // namespace forebay
