/// Weights that every token reads, in memory of our own and in huge pages where the system has them: whether
/// a mapped file gets such pages is up to the file system, and a product is a third to a half faster with
/// them.
#pragma once

#include <span>
#include <vector>

#include "core/memory_budget.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "gguf/gguf.h"
#include "tensor/buffer.h"

namespace forebay {

/// Whole pages of one shard, with what lies between tensors that are near each other.
struct TrunkExtent {
  int shard = 0;
  uint64_t first = 0;   // offset in the file
  uint64_t length = 0;  // whole pages
  uint64_t at = 0;      // in memory

  uint64_t end() const { return first + length; }
};

/// Where a copy of these tensors has them, in the order of the file.
std::vector<TrunkExtent> trunk_extents(std::vector<const TensorInfo*> tensors);
/// What it takes.
uint64_t extent_bytes(std::span<const TrunkExtent> extents);

/// Immutable once read, thread-safe.
class TrunkCopy {
 public:
  TrunkCopy() = default;
  /// Reads with all threads: past the page cache, unless most of it is there already. Says how far it is in
  /// the log when it takes seconds. Errors: kOutOfMemory; kIo, naming tensor and file.
  static Result<TrunkCopy> read(Storage& storage, const GgufFile& file,
                                std::vector<const TensorInfo*> tensors, ThreadPool& pool,
                                MemoryBudget& budget);

  /// The tensor's bytes, valid while the copy lives; null where it has none.
  const std::byte* find(const TensorInfo& tensor) const;
  uint64_t bytes() const { return memory_.bytes(); }

 private:
  std::vector<TrunkExtent> extents_;
  Buffer memory_;
};

/// The trunk's tensors and the draft head's, which may be in a file of its own.
struct TrunkCopies {
  TrunkCopy trunk, draft;
};

}  // namespace forebay
