/// A sidecar of a model file with each expert in one piece: docs/formats/pack.md. An expert is then one read
/// instead of three.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"
#include "experts/mapped_experts.h"

namespace forebay {

struct PackHeader {
  struct Block {
    uint64_t offset = 0;  // of expert 0, in the file
    uint64_t stride = 0;  // from one expert to the next: whole pages
    uint64_t n_experts = 0;
    std::array<uint64_t, 3> plane_bytes = {};  // gate, up, down, one after the other
    uint64_t fingerprint = 0;                  // of the model's planes
  };
  std::vector<Block> blocks;
};

/// Sees types, shapes, places and a few bytes of a block's planes: enough to tell models and versions apart.
uint64_t fingerprint_of(const ExpertPlanes& block);

/// Errors: kCorrupt, kUnsupported for another version. `file_bytes` bounds what the header may point at.
Result<PackHeader> parse_pack_header(std::span<const std::byte> bytes, uint64_t file_bytes);

/// Copies every expert out of the mapped planes. The file appears when it is complete.
/// Errors: kIo, kCancelled.
Result<void> write_expert_pack(Storage& storage, std::span<const ExpertPlanes> blocks, const Path& path,
                               const std::function<void(uint64_t done, uint64_t total)>& progress,
                               std::stop_token stop);

/// Most bytes of a header.
constexpr uint64_t kMaxPackHeader = uint64_t{64} << 10;

}  // namespace forebay
