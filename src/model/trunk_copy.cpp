#include "model/trunk_copy.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "core/log.h"
#include "core/mapped_memory.h"
#include "core/page_range.h"
#include "core/progress.h"

namespace forebay {
namespace {

/// Norms and routers between large matrices are read with them rather than apart.
constexpr uint64_t kGapBytes = 64 * 1024;
/// Long enough for a disk's full rate, short enough to share among threads.
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;

/// One read.
struct Piece {
  int shard = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::byte* to = nullptr;
};

std::vector<Piece> pieces_of(std::span<const TrunkExtent> extents, std::byte* memory,
                             std::span<const uint64_t> file_bytes) {
  std::vector<Piece> pieces;
  for (const TrunkExtent& extent : extents) {
    // The file need not end with a page.
    const uint64_t end = std::min(extent.end(), file_bytes[static_cast<size_t>(extent.shard)]);
    for (uint64_t at = extent.first; at < end; at += kPieceBytes)
      pieces.push_back(
          {extent.shard, at, std::min(kPieceBytes, end - at), memory + extent.at + (at - extent.first)});
  }
  return pieces;
}

/// "blk.0.attn_q.weight", or "... to ..." where a piece is of several.
std::string names_in(const Piece& piece, std::span<const TensorInfo* const> tensors) {
  std::string first, last;
  for (const TensorInfo* tensor : tensors)
    if (tensor->shard == piece.shard && tensor->offset < piece.offset + piece.bytes &&
        tensor->offset + tensor->bytes > piece.offset) {
      if (first.empty()) first = tensor->name;
      last = tensor->name;
    }
  return first == last ? first : fmt::format("{} to {}", first, last);
}

bool in_page_cache(const GgufFile& file, std::span<const TensorInfo* const> tensors) {
  uint64_t cached = 0, all = 0;
  for (const TensorInfo* tensor : tensors) {
    all += tensor->bytes;
    if (mostly_in_memory(file.bytes(*tensor))) cached += tensor->bytes;
  }
  return 2 * cached > all;
}

/// Says how far it is, every few seconds. Thread-safe.
class Report {
 public:
  explicit Report(uint64_t total) : total_(total) {}

  void add(uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    done_ += bytes;
    const Clock::time_point now = Clock::now();
    if (now < next_ || done_ == total_) return;
    next_ = now + kEvery;
    log::info("{}", progress_text("trunk", done_, total_, ProgressUnit::kBytes, now - start_, ""));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kEvery{2};
  const uint64_t total_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  Clock::time_point next_ = start_ + kEvery;
  uint64_t done_ = 0;
};

bool before(const TensorInfo* a, const TensorInfo* b) {
  return a->shard != b->shard ? a->shard < b->shard : a->offset < b->offset;
}

}  // namespace

std::vector<TrunkExtent> trunk_extents(std::vector<const TensorInfo*> tensors) {
  std::sort(tensors.begin(), tensors.end(), before);
  std::vector<TrunkExtent> extents;
  for (const TensorInfo* tensor : tensors) {
    const PageRange pages = pages_around(tensor->offset, tensor->bytes);
    if (!extents.empty()) {
      TrunkExtent& last = extents.back();
      if (last.shard == tensor->shard && pages.first <= last.end() + kGapBytes) {
        last.length = std::max(last.end(), pages.first + pages.length) - last.first;
        continue;
      }
    }
    const uint64_t at = extents.empty() ? 0 : extents.back().at + extents.back().length;
    extents.push_back({tensor->shard, pages.first, pages.length, at});
  }
  return extents;
}

uint64_t extent_bytes(std::span<const TrunkExtent> extents) {
  return extents.empty() ? 0 : extents.back().at + extents.back().length;
}

Result<TrunkCopy> TrunkCopy::read(Storage& storage, const GgufFile& file,
                                  std::vector<const TensorInfo*> tensors, ThreadPool& pool,
                                  MemoryBudget& budget) {
  std::sort(tensors.begin(), tensors.end(), before);
  TrunkCopy copy;
  copy.extents_ = trunk_extents(tensors);
  copy.memory_ = TRY(Buffer::allocate(budget, extent_bytes(copy.extents_), "trunk", PageSize::kHuge));

  const bool cached = in_page_cache(file, tensors);
  std::vector<std::unique_ptr<ReadableFile>> shards(static_cast<size_t>(file.n_shards()));
  std::vector<uint64_t> file_bytes(shards.size());
  for (const TrunkExtent& extent : copy.extents_) {
    const auto shard = static_cast<size_t>(extent.shard);
    if (shards[shard] != nullptr) continue;
    const Path& path = file.shard_path(extent.shard);
    shards[shard] = TRY(cached ? storage.open(path) : storage.open_direct(path));
    file_bytes[shard] = shards[shard]->size();
  }

  for (const TensorInfo* tensor : tensors)
    if (const auto shard = static_cast<size_t>(tensor->shard);
        tensor->offset + tensor->bytes > file_bytes[shard])
      return Error{Code::kIo, fmt::format("{}: {} has {} bytes, the tensor ends at {}", tensor->name,
                                          shards[shard]->path().string(), file_bytes[shard],
                                          tensor->offset + tensor->bytes)};

  const std::vector<Piece> pieces = pieces_of(copy.extents_, copy.memory_.data(), file_bytes);
  Report report(extent_bytes(copy.extents_));
  std::vector<std::optional<Error>> errors(pieces.size());
  std::atomic<bool> failed = false;
  pool.parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end && !failed; ++i) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      const std::span<std::byte> to(piece.to, pages_around(piece.offset, piece.bytes).length);
      Result<std::span<const std::byte>> got =
          shards[static_cast<size_t>(piece.shard)]->read_around(piece.offset, piece.bytes, to);
      if (!got) {
        errors[static_cast<size_t>(i)] = std::move(got).error();
        failed = true;
      }
      report.add(piece.bytes);
    }
  });
  for (size_t i = 0; i < pieces.size(); ++i)
    if (errors[i]) return std::move(*errors[i]).in(names_in(pieces[i], tensors));
  return copy;
}

const std::byte* TrunkCopy::find(const TensorInfo& tensor) const {
  // The last extent that begins no later.
  const auto after = std::upper_bound(
      extents_.begin(), extents_.end(), tensor, [](const TensorInfo& t, const TrunkExtent& extent) {
        return t.shard != extent.shard ? t.shard < extent.shard : t.offset < extent.first;
      });
  if (after == extents_.begin()) return nullptr;
  const TrunkExtent& extent = *std::prev(after);
  if (extent.shard != tensor.shard || tensor.offset + tensor.bytes > extent.end()) return nullptr;
  return memory_.data() + extent.at + (tensor.offset - extent.first);
}

}  // namespace forebay
