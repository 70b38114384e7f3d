#include "core/ensure.h"
#include "core/log.h"
#include "core/storage.h"

namespace forebay {

Result<AtomicFile> AtomicFile::create(Storage& storage, const Path& path) {
  Path partial = path;
  partial += ".partial";
  std::unique_ptr<WritableFile> file = TRY(storage.create(partial));
  return AtomicFile(storage, path, std::move(partial), std::move(file));
}

Result<AtomicFile> AtomicFile::create_direct(Storage& storage, const Path& path, uint64_t bytes) {
  Path partial = path;
  partial += ".partial";
  std::unique_ptr<WritableFile> file = TRY(storage.create_direct(partial, bytes));
  return AtomicFile(storage, path, std::move(partial), std::move(file));
}

AtomicFile::AtomicFile(Storage& storage, Path final_path, Path partial_path,
                       std::unique_ptr<WritableFile> file)
    : storage_(&storage),
      final_path_(std::move(final_path)),
      partial_path_(std::move(partial_path)),
      file_(std::move(file)) {}

AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;

AtomicFile::~AtomicFile() {
  if (file_ == nullptr) return;
  file_.reset();
  if (Result<void> removed = storage_->remove(partial_path_); !removed)
    log::warn("left behind: {}", removed.error().message);
}

Result<void> AtomicFile::commit() {
  ENSURE(file_ != nullptr, "commit of a file that is committed already");
  // Content before name: a crash in between leaves the old file and a partial one. On failure file_
  // stays, and the destructor removes what was written.
  TRY(file_->sync());
  TRY(file_->close());
  TRY(storage_->rename(partial_path_, final_path_));
  file_.reset();
  return {};
}

}  // namespace forebay
