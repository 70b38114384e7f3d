/// A Storage that fails on purpose: the n-th operation of a kind returns an Error, everything else goes to
/// the storage below. SQLite's loop: raise n until a run meets no fault.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/storage.h"

namespace forebay {

enum class StorageOp { kOpen, kRead, kMap, kCreate, kWrite, kSync, kClose, kRename, kRemove };

struct FaultPlan {
  StorageOp op = StorageOp::kRead;
  int fail_at = 0;            // 1 = the first such operation; 0 = never
  bool keep_failing = false;  // also every later one (a full disk stays full)
  Code code = Code::kIo;
  const char* reason = "injected fault";
  /// A disk that hangs: called on the operation's thread instead of failing it, and then it goes on.
  std::function<void()> hang = {};
};

/// Thread-safe.
class FaultyStorage : public Storage {
 public:
  FaultyStorage(Storage& below, FaultPlan plan);
  /// How many faults were returned so far: 0 after a run means the run met none.
  int n_faults() const;
  /// Counts from here: the fail_at-th operation from now on fails. While none is under way.
  void arm(int fail_at);

  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override;
  Result<std::unique_ptr<ReadableFile>> open_direct(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> create(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> open_to_append(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> create_direct(const Path& path, uint64_t bytes) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  bool exists(const Path& path) override;
  Result<std::vector<FileEntry>> list(const Path& directory) override { return below_.list(directory); }
  Result<void> make_directory(const Path& path) override { return below_.make_directory(path); }
  Result<void> touch(const Path& path) override { return below_.touch(path); }
  Result<std::unique_ptr<FileLock>> lock(const Path& path, bool wait) override {
    return below_.lock(path, wait);
  }

  struct Counter;

 private:
  Storage& below_;
  std::shared_ptr<Counter> counter_;
};

}  // namespace forebay
