#include "experts/expert_store.h"

#include <algorithm>
#include <map>

#include "core/page_range.h"

namespace forebay {
namespace {

/// A plane's room in a slot: its bytes may start and end inside a page.
uint64_t room(uint64_t bytes) {
  return (bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

uint64_t ExpertStore::Plane::bytes() const {
  return static_cast<uint64_t>(matrices.first.n_rows * matrices.first.row_stride_bytes);
}

Result<ExpertStore> ExpertStore::open(Storage& storage, std::vector<ExpertPlanes> blocks) {
  ExpertStore store;
  store.direct_ = true;
  std::map<Path, std::shared_ptr<ReadableFile>> files;
  for (const ExpertPlanes& planes : blocks) {
    Block& block = store.blocks_.emplace_back();
    const std::array<const ExpertMatrices*, 3> all{&planes.gate, &planes.up, &planes.down};
    for (size_t p = 0; p < all.size(); ++p) {
      std::shared_ptr<ReadableFile>& file = files[all[p]->file];
      if (file == nullptr) file = TRY(storage.open_direct(all[p]->file));
      store.direct_ = store.direct_ && file->direct();
      block[p] = {file, *all[p]};
    }
  }
  return store;
}

uint64_t ExpertStore::slot_bytes(int block) const {
  uint64_t sum = 0;
  for (const Plane& plane : blocks_[block]) sum += room(plane.bytes());
  return sum;
}

uint64_t ExpertStore::expert_bytes(int block) const {
  uint64_t sum = 0;
  for (const Plane& plane : blocks_[block]) sum += plane.bytes();
  return sum;
}

uint64_t ExpertStore::all_slot_bytes() const {
  uint64_t sum = 0;
  for (int b = 0; b < n_blocks(); ++b) sum += slot_bytes(b) * static_cast<uint64_t>(n_experts(b));
  return sum;
}

int64_t ExpertStore::n_experts(int block) const {
  return blocks_[block][0].matrices.n_experts;
}

int64_t ExpertStore::max_experts() const {
  int64_t most = 0;
  for (int b = 0; b < n_blocks(); ++b) most = std::max(most, n_experts(b));
  return most;
}

std::array<QueuedRead, ExpertStore::kReads> ExpertStore::reads(ExpertId id, std::span<std::byte> slot,
                                                               uint64_t tag) const {
  std::array<QueuedRead, kReads> reads;
  for (size_t p = 0; p < reads.size(); ++p) {
    const Plane& plane = blocks_[id.block][p];
    const uint64_t at =
        plane.matrices.file_offset + static_cast<uint64_t>(id.index * plane.matrices.expert_stride);
    reads[p] = {plane.file.get(), at, plane.bytes(), slot.first(room(plane.bytes())), tag + p};
    slot = slot.subspan(room(plane.bytes()));
  }
  return reads;
}

ResidentExpert ExpertStore::assemble(ExpertId id, const std::array<const std::byte*, kReads>& planes) const {
  std::array<MatrixView, kReads> views;
  for (size_t p = 0; p < views.size(); ++p) {
    views[p] = blocks_[id.block][p].matrices.first;
    views[p].data = planes[p];
  }
  return ResidentExpert{id.index, views[0], views[1], views[2]};
}

}  // namespace forebay
