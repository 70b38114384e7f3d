#include "experts/expert_store.h"

#include <map>

#include <fmt/format.h>

namespace forebay {
namespace {

constexpr uint64_t kPage = 4096;

/// A plane's room in a slot: its bytes may start and end inside a page.
uint64_t room(uint64_t bytes) {
  return (bytes + 2 * kPage - 1) / kPage * kPage;
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

int64_t ExpertStore::n_experts(int block) const {
  return blocks_[block][0].matrices.n_experts;
}

Result<ResidentExpert> ExpertStore::read(ExpertId id, std::span<std::byte> slot) const {
  std::array<MatrixView, 3> views;
  for (size_t p = 0; p < views.size(); ++p) {
    const Plane& plane = blocks_[id.block][p];
    const uint64_t at =
        plane.matrices.file_offset + static_cast<uint64_t>(id.index * plane.matrices.expert_stride);
    const Result<std::span<const std::byte>> bytes =
        plane.file->read_around(at, plane.bytes(), slot.first(room(plane.bytes())));
    if (!bytes)
      return Error{bytes.error().code,
                   fmt::format("expert {} of block {}: {}", id.index, id.block, bytes.error().message)};
    views[p] = plane.matrices.first;
    views[p].data = bytes->data();
    slot = slot.subspan(room(plane.bytes()));
  }
  return ResidentExpert{id.index, views[0], views[1], views[2]};
}

}  // namespace forebay
