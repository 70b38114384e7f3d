/// Experts' bytes on disk, read in place from the model's own files: three planes per expert.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "forebay/result.h"

#include "core/read_queue.h"
#include "core/storage.h"
#include "experts/expert_source.h"
#include "experts/mapped_experts.h"

namespace forebay {

/// Thread-safe.
class ExpertStore {
 public:
  static constexpr int kReads = 3;  // per expert: gate, up, down

  /// Opens the planes' files for direct reads, past the page cache, where the file system allows it.
  static Result<ExpertStore> open(Storage& storage, std::vector<ExpertPlanes> blocks);

  int n_blocks() const { return static_cast<int>(blocks_.size()); }
  bool direct() const { return direct_; }
  int64_t n_experts(int block) const;
  int64_t max_experts() const;  // of any block
  /// Memory that an expert of this block needs, with room to read whole pages around its planes.
  uint64_t slot_bytes(int block) const;
  /// What is read for one expert of this block.
  uint64_t expert_bytes(int block) const;
  /// All experts in memory.
  uint64_t all_slot_bytes() const;

  /// The reads that fill a slot (page-aligned, slot_bytes), with tags from `tag` on.
  std::array<QueuedRead, kReads> reads(ExpertId id, std::span<std::byte> slot, uint64_t tag) const;
  /// The expert, from the places its reads put its planes.
  ResidentExpert assemble(ExpertId id, const std::array<const std::byte*, kReads>& planes) const;

 private:
  struct Plane {
    std::shared_ptr<ReadableFile> file;
    ExpertMatrices matrices;
    uint64_t bytes() const;
  };
  using Block = std::array<Plane, kReads>;

  std::vector<Block> blocks_;
  bool direct_ = false;
};

}  // namespace forebay
