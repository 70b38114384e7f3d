#include "experts/expert_store.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/page_range.h"
#include "experts/expert_pack.h"

namespace forebay {
namespace {

/// A piece's room in a slot: its bytes may start and end inside a page.
uint64_t room(uint64_t bytes) {
  return (bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
}

uint64_t bytes_of(const MatrixView& matrix) {
  return static_cast<uint64_t>(matrix.n_rows * matrix.row_stride_bytes);
}

}  // namespace

Result<ExpertStore> ExpertStore::open(Storage& storage, std::vector<ExpertPlanes> blocks) {
  ExpertStore store;
  store.direct_ = true;
  std::map<Path, std::shared_ptr<ReadableFile>> files;
  for (const ExpertPlanes& planes : blocks) {
    Block& block = store.blocks_.emplace_back();
    block.n_experts = planes.gate.n_experts;
    const std::array<const ExpertMatrices*, 3> all{&planes.gate, &planes.up, &planes.down};
    for (size_t p = 0; p < all.size(); ++p) {
      std::shared_ptr<ReadableFile>& file = files[all[p]->file];
      if (file == nullptr) file = TRY(storage.open_direct(all[p]->file));
      store.direct_ = store.direct_ && file->direct();
      block.pieces.push_back(
          {file, all[p]->file_offset, static_cast<uint64_t>(all[p]->expert_stride), bytes_of(all[p]->first)});
      block.planes[p] = {all[p]->first, static_cast<int>(p), 0};
    }
  }
  return store;
}

Result<ExpertStore> ExpertStore::open_pack(Storage& storage, std::vector<ExpertPlanes> blocks,
                                           const Path& pack) {
  const std::shared_ptr<ReadableFile> file = TRY(storage.open_direct(pack));
  std::vector<std::byte> bytes(std::min(file->size(), kMaxPackHeader));
  TRY(file->read_at(0, bytes));
  const Result<PackHeader> header = parse_pack_header(bytes, file->size());
  if (!header) return Error(header.error()).in(pack.string());
  // A pack may also hold the draft head's block, which comes last and is not always loaded.
  if (header->blocks.size() < blocks.size())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: {} blocks, the model has {}; forebay pack makes it anew", pack.string(),
                             header->blocks.size(), blocks.size())};
  ExpertStore store;
  store.direct_ = file->direct();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const PackHeader::Block& packed = header->blocks[i];
    if (packed.fingerprint != fingerprint_of(blocks[i]))
      return Error{
          Code::kInvalidArgument,
          fmt::format("{}: block {} was packed from another model or another version of it; forebay pack "
                      "makes it anew",
                      pack.string(), i)};
    Block& block = store.blocks_.emplace_back();
    block.n_experts = static_cast<int64_t>(packed.n_experts);
    const std::array<const ExpertMatrices*, 3> all{&blocks[i].gate, &blocks[i].up, &blocks[i].down};
    uint64_t at = 0;
    for (size_t p = 0; p < all.size(); ++p) {
      block.planes[p] = {all[p]->first, 0, at};
      at += packed.plane_bytes[p];
    }
    block.pieces.push_back({file, packed.offset, packed.stride, at});
  }
  return store;
}

uint64_t ExpertStore::slot_bytes(int block) const {
  uint64_t sum = 0;
  for (const Piece& piece : blocks_[block].pieces) sum += room(piece.bytes);
  return sum;
}

uint64_t ExpertStore::expert_bytes(int block) const {
  uint64_t sum = 0;
  for (const Piece& piece : blocks_[block].pieces) sum += piece.bytes;
  return sum;
}

uint64_t ExpertStore::all_slot_bytes() const {
  uint64_t sum = 0;
  for (int b = 0; b < n_blocks(); ++b) sum += slot_bytes(b) * static_cast<uint64_t>(n_experts(b));
  return sum;
}

int64_t ExpertStore::max_experts() const {
  int64_t most = 0;
  for (const Block& block : blocks_) most = std::max(most, block.n_experts);
  return most;
}

void ExpertStore::reads(ExpertId id, std::span<std::byte> slot, uint64_t tag,
                        std::vector<QueuedRead>& out) const {
  for (const Piece& piece : blocks_[id.block].pieces) {
    const uint64_t at = piece.offset + static_cast<uint64_t>(id.index) * piece.stride;
    out.push_back({piece.file.get(), at, piece.bytes, slot.first(room(piece.bytes)), tag++});
    slot = slot.subspan(room(piece.bytes));
  }
}

ResidentExpert ExpertStore::assemble(ExpertId id,
                                     const std::array<const std::byte*, kMaxReads>& pieces) const {
  std::array<MatrixView, 3> views;
  for (size_t p = 0; p < views.size(); ++p) {
    const Plane& plane = blocks_[id.block].planes[p];
    views[p] = plane.shape;
    views[p].data = pieces[plane.piece] + plane.at;
  }
  return ResidentExpert{id.index, views[0], views[1], views[2]};
}

}  // namespace forebay
