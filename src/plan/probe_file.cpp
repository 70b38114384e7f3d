#include "plan/probe_file.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/format.h"
#include "core/page_range.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kWriteBytes = uint64_t{8} << 20;
/// Synced this often, so that the last sync has little left to write.
constexpr uint64_t kBetweenSyncs = uint64_t{64} << 20;

Result<void> check_room(const Path& folder, uint64_t wanted) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error)
    return Error{Code::kIo,
                 fmt::format("{}: {}, expected a folder to write in", folder.string(), error.message())};
  // A full disk hurts others too: as much again stays free.
  if (space.available / 2 < wanted)
    return Error{Code::kIo, fmt::format("{}: {} bytes free, {} wanted for a test file of {} bytes",
                                        folder.string(), space.available, 2 * wanted, wanted)};
  return {};
}

bool is_in_memory(const Path& folder) {
  struct statfs status = {};
  return ::statfs(folder.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

}  // namespace

Result<ProbeFile> ProbeFile::create(Storage& storage, const Path& folder, const Options& options,
                                    const WriteCallback& on_write, std::stop_token stop) {
  TRY(check_room(folder, options.bytes));
  const Path path = folder / fmt::format("forebay-disk-test-{}.partial", ::getpid());
  std::unique_ptr<WritableFile> out = TRY(storage.create(path));
  ProbeFile probe;
  probe.in_memory_ = is_in_memory(folder);
  Result<std::unique_ptr<ReadableFile>> opened = [&]() -> Result<std::unique_ptr<ReadableFile>> {
    // One page first: some file systems take O_DIRECT and then refuse to read.
    TRY(out->append(std::vector<std::byte>(kPageBytes)));
    return storage.open_direct(path);
  }();
  TRY(storage.remove(path));
  probe.file_ = TRY(std::move(opened));

  // Random words: drives and file systems that compress or share blocks find nothing to do.
  std::mt19937_64 random(2);
  std::vector<std::byte> piece(std::min(kWriteBytes, std::max(options.bytes, kPageBytes)));
  auto* words = reinterpret_cast<uint64_t*>(piece.data());
  const size_t n_words = piece.size() / sizeof(uint64_t);
  std::generate(words, words + n_words, random);

  const Clock::time_point start = Clock::now();
  uint64_t synced = 0;
  while (out->position() < options.bytes && Clock::now() - start < options.longest) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "interrupted"};
    const uint64_t salt = random();
    for (size_t i = 0; i < n_words; ++i) words[i] += salt;
    TRY(out->append(
        std::span(piece).first(std::min<uint64_t>(piece.size(), options.bytes - out->position()))));
    if (out->position() - synced >= kBetweenSyncs) {
      TRY(out->sync());
      synced = out->position();
    }
    if (on_write) on_write(out->position(), options.bytes);
  }
  TRY(out->sync());
  probe.bytes_ = out->position();
  TRY(out->close());
  return probe;
}

std::vector<uint64_t> ProbeFile::places(uint64_t blob_bytes) const {
  std::vector<uint64_t> places;
  const uint64_t step = std::max(kPageBytes, (blob_bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  for (uint64_t at = 0; at + blob_bytes <= bytes_; at += step) places.push_back(at);
  return places;
}

}  // namespace forebay
