/// The one seam between this program and files. Everything that reads or writes a file goes through a
/// Storage, so that tests can make any read, write, sync or rename fail (core/faulty_storage.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "core/path.h"

namespace forebay {

/// A read-only view of a file's bytes, unmapped when dropped. Pages are reclaimable by the system.
class Mapping {
 public:
  virtual ~Mapping() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

/// Thread-safe: reads carry their own offset.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual const Path& path() const = 0;
  virtual uint64_t size() const = 0;  // at open
  /// Fills `out` from `offset` or fails: a short read is kIo and names offset, wanted and got.
  virtual Result<void> read_at(uint64_t offset, std::span<std::byte> out) = 0;
  /// The n bytes at `offset`, somewhere inside `buffer`: a file open for direct reads moves whole pages,
  /// others just what was asked. `buffer` starts on a page and holds n bytes rounded up to pages and one page
  /// more.
  virtual Result<std::span<const std::byte>> read_around(uint64_t offset, uint64_t n,
                                                         std::span<std::byte> buffer) {
    if (Result<void> read = read_at(offset, buffer.first(n)); !read) return std::move(read).error();
    return std::span<const std::byte>(buffer.first(n));
  }
  /// Whether reads go past the page cache.
  virtual bool direct() const { return false; }
  /// What read_around reads from, for who hands reads to the system himself; -1: only the calls above.
  virtual int descriptor() const { return -1; }
  /// Maps the whole file. An empty file maps to an empty span.
  virtual Result<std::unique_ptr<Mapping>> map() = 0;
};

/// Thread-compatible. Dropping it without close() loses errors, not bytes already written.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual const Path& path() const = 0;
  virtual uint64_t position() const = 0;
  virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  /// Overwrites bytes that were already appended (headers whose content is known last).
  virtual Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Whole pages at a page border, from page-aligned memory, within the bytes that create_direct took.
  /// Thread-safe where direct() is true; else as write_at.
  virtual Result<void> write_pages(uint64_t offset, std::span<const std::byte> pages) {
    return write_at(offset, pages);
  }
  /// Whether write_pages goes past the page cache.
  virtual bool direct() const { return false; }
  virtual Result<void> sync() = 0;
  virtual Result<void> close() = 0;
};

/// One file of a directory.
struct FileEntry {
  std::string name;
  uint64_t bytes = 0;
  int64_t modified = 0;  // nanoseconds since 1970
};

/// Held while it lives; the system lets go of it when the process ends, however that happens.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Thread-safe.
class Storage {
 public:
  virtual ~Storage() = default;
  virtual Result<std::unique_ptr<ReadableFile>> open(const Path& path) = 0;
  /// For read_around past the page cache; where the file system refuses that, as open().
  virtual Result<std::unique_ptr<ReadableFile>> open_direct(const Path& path) { return open(path); }
  /// Creates or truncates.
  virtual Result<std::unique_ptr<WritableFile>> create(const Path& path) = 0;
  /// What is there stays; position() begins behind it. For logs, which nobody rewrites.
  virtual Result<std::unique_ptr<WritableFile>> open_to_append(const Path& path);
  /// As create() for a file of exactly `bytes` bytes, whole pages, to be filled by write_pages: what the disk
  /// does not hold fails here.
  virtual Result<std::unique_ptr<WritableFile>> create_direct(const Path& path, uint64_t bytes);
  virtual Result<void> rename(const Path& from, const Path& to) = 0;
  virtual Result<void> remove(const Path& path) = 0;
  virtual bool exists(const Path& path) = 0;

  // Of directories; storages that have none say kUnsupported.
  /// The regular files, in no order.
  virtual Result<std::vector<FileEntry>> list(const Path& directory);
  /// And what leads to it. One that is there already is fine.
  virtual Result<void> make_directory(const Path& path);
  /// The file was modified now.
  virtual Result<void> touch(const Path& path);
  /// Makes the file if it is not there, and is its only holder among all processes. Null where another holds
  /// it and `wait` is false.
  virtual Result<std::unique_ptr<FileLock>> lock(const Path& path, bool wait);
};

/// The operating system's files.
std::unique_ptr<Storage> make_posix_storage();

/// The whole file as bytes / text; refuses files above `limit_bytes` by name and size.
Result<std::vector<std::byte>> read_file(Storage& storage, const Path& path,
                                         uint64_t limit_bytes = 1ull << 30);
Result<std::string> read_text(Storage& storage, const Path& path, uint64_t limit_bytes = 1ull << 30);

/// Writes `name.partial`, and on commit() syncs and renames it to `name`: readers see the old file or
/// the whole new one. Dropped without commit, it removes the partial file.
class AtomicFile {
 public:
  static Result<AtomicFile> create(Storage& storage, const Path& path);
  /// For file().write_pages: Storage::create_direct.
  static Result<AtomicFile> create_direct(Storage& storage, const Path& path, uint64_t bytes);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  WritableFile& file() { return *file_; }
  Result<void> commit();

 private:
  AtomicFile(Storage& storage, Path final_path, Path partial_path, std::unique_ptr<WritableFile> file);

  Storage* storage_;
  Path final_path_;
  Path partial_path_;
  std::unique_ptr<WritableFile> file_;  // null once committed or moved from
};

}  // namespace forebay
