/// Experts' bytes on disk: in place in the model's own files, three planes per expert, or in a pack, in one
/// piece.
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
  static constexpr int kMaxReads = 3;  // per expert: gate, up, down

  /// Opens the planes' files for direct reads, past the page cache, where the file system allows it.
  static Result<ExpertStore> open(Storage& storage, std::vector<ExpertPlanes> blocks);
  /// Reads from a pack instead. Errors: those of parse_pack_header; kInvalidArgument for another model's
  /// pack.
  static Result<ExpertStore> open_pack(Storage& storage, std::vector<ExpertPlanes> blocks, const Path& pack);

  int n_blocks() const { return static_cast<int>(blocks_.size()); }
  bool direct() const { return direct_; }
  int64_t n_experts(int block) const { return blocks_[block].n_experts; }
  int64_t max_experts() const;  // of any block
  /// Memory that an expert of this block needs, with room to read whole pages around its planes.
  uint64_t slot_bytes(int block) const;
  /// What is read for one expert of this block.
  uint64_t expert_bytes(int block) const;
  /// All experts in memory.
  uint64_t all_slot_bytes() const;

  /// The reads that fill a slot (page-aligned, slot_bytes), with tags from `tag` on.
  void reads(ExpertId id, std::span<std::byte> slot, uint64_t tag, std::vector<QueuedRead>& out) const;
  int n_reads(int block) const { return static_cast<int>(blocks_[block].pieces.size()); }
  /// The expert, from the places where its reads put their pieces.
  ResidentExpert assemble(ExpertId id, const std::array<const std::byte*, kMaxReads>& pieces) const;

 private:
  /// What one read gets: the same piece of every expert, `stride` bytes apart.
  struct Piece {
    std::shared_ptr<ReadableFile> file;
    uint64_t offset = 0;  // expert 0's
    uint64_t stride = 0;
    uint64_t bytes = 0;
  };
  struct Plane {
    MatrixView shape;  // its data is set when it is read
    int piece = 0;
    uint64_t at = 0;  // in the piece
  };
  struct Block {
    std::vector<Piece> pieces;
    std::array<Plane, 3> planes;
    int64_t n_experts = 0;
  };

  std::vector<Block> blocks_;
  bool direct_ = false;
};

}  // namespace forebay
