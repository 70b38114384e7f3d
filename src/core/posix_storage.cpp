#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/ensure.h"
#include "core/page_range.h"
#include "core/storage.h"

namespace forebay {
namespace {

Error system_error(const Path& path, std::string_view action) {
  const int number = errno;
  const Code code = number == ENOENT || number == ENOTDIR ? Code::kNotFound
                    : number == ENOMEM                    ? Code::kOutOfMemory
                                                          : Code::kIo;
  return {code,
          fmt::format("{}: {} failed: {}", path.string(), action, std::generic_category().message(number))};
}

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Result<Descriptor> open_descriptor(const Path& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return system_error(path, flags & O_CREAT ? "create" : "open");
  return Descriptor(fd);
}

class PosixMapping : public Mapping {
 public:
  PosixMapping(void* data, uint64_t size) : data_(data), size_(size) {}
  ~PosixMapping() override {
    if (size_ > 0) ::munmap(data_, size_);
  }

  std::span<const std::byte> bytes() const override { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_;
  uint64_t size_;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(Path path, Descriptor fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  const Path& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  int descriptor() const override { return fd_.get(); }

  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    size_t got = 0;
    while (got < out.size()) {
      const ssize_t n =
          ::pread(fd_.get(), out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error(path_, fmt::format("read of {} bytes at offset {}", out.size(), offset));
      if (n == 0) return short_read(*this, offset, out.size(), got);
      got += static_cast<size_t>(n);
    }
    return {};
  }

  Result<std::unique_ptr<Mapping>> map() override {
    void* data = nullptr;
    if (size_ > 0) {
      data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_.get(), 0);
      if (data == MAP_FAILED) return system_error(path_, fmt::format("map of {} bytes", size_));
    }
    return std::unique_ptr<Mapping>(std::make_unique<PosixMapping>(data, size_));
  }

 private:
  const Path path_;
  const Descriptor fd_;
  const uint64_t size_;
};

/// Opened with O_DIRECT: offset, length and memory of a read are whole pages.
class DirectFile : public PosixReadableFile {
 public:
  DirectFile(Path path, Descriptor buffered, Descriptor direct, uint64_t size)
      : PosixReadableFile(std::move(path), std::move(buffered), size), direct_(std::move(direct)) {}

  bool direct() const override { return true; }
  int descriptor() const override { return direct_.get(); }

  Result<std::span<const std::byte>> read_around(uint64_t offset, uint64_t n,
                                                 std::span<std::byte> buffer) override {
    const auto [first, length, skip] = pages_around(offset, n);
    const uint64_t wanted = skip + n;
    ENSURE(length <= buffer.size() && reinterpret_cast<uintptr_t>(buffer.data()) % kPageBytes == 0,
           "read_around wants a page-aligned buffer with a page to spare");
    uint64_t got = 0;
    // The file's last page may be cut short; anything else short is read on from a page border.
    while (got < wanted) {
      const ssize_t count =
          ::pread(direct_.get(), buffer.data() + got, length - got, static_cast<off_t>(first + got));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        return system_error(path(), fmt::format("direct read of {} bytes at offset {}", n, offset));
      got += static_cast<uint64_t>(count);
      if (count == 0 || (got < wanted && got % kPageBytes != 0))
        return short_read(*this, offset, n, got - std::min(got, skip));
    }
    return std::span<const std::byte>(buffer.subspan(skip, n));
  }

 private:
  const Descriptor direct_;
};

/// All of the bytes, however many calls the system wants.
Result<void> write_at_offset(const Path& path, const Descriptor& fd, uint64_t offset,
                             std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path, fmt::format("write of {} bytes at offset {}", bytes.size(), offset));
    done += static_cast<size_t>(n);
  }
  return {};
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(Path path, Descriptor fd, uint64_t position = 0)
      : path_(std::move(path)), fd_(std::move(fd)), position_(position) {}

  const Path& path() const override { return path_; }
  uint64_t position() const override { return position_; }

  Result<void> append(std::span<const std::byte> bytes) override {
    TRY(write_all(position_, bytes));
    position_ += bytes.size();
    return {};
  }

  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    ENSURE(offset <= position_ && bytes.size() <= position_ - offset, "write_at beyond what was appended");
    return write_all(offset, bytes);
  }

  Result<void> sync() override {
    if (::fsync(fd_.get()) != 0) return system_error(path_, "sync");
    return {};
  }

  Result<void> close() override {
    // The descriptor is gone even when close reports an error.
    if (::close(fd_.release()) != 0 && errno != EINTR) return system_error(path_, "close");
    return {};
  }

 private:
  Result<void> write_all(uint64_t offset, std::span<const std::byte> bytes) {
    ENSURE(fd_.get() >= 0, "write to a closed file");
    return write_at_offset(path_, fd_, offset, bytes);
  }

  const Path path_;
  Descriptor fd_;
  uint64_t position_;
};

/// A file whose bytes are there from the start and are written in pages, past the page cache where `direct`
/// is open.
class PosixPagedFile : public WritableFile {
 public:
  PosixPagedFile(Path path, Descriptor fd, std::optional<Descriptor> direct, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), direct_(std::move(direct)), size_(size) {}

  const Path& path() const override { return path_; }
  uint64_t position() const override { return size_; }
  bool direct() const override { return direct_.has_value(); }

  Result<void> append(std::span<const std::byte>) override {
    return Error{Code::kUnsupported, fmt::format("{}: append to a file of pages", path_.string())};
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    return write_all(fd_, offset, bytes);
  }
  Result<void> write_pages(uint64_t offset, std::span<const std::byte> pages) override {
    ENSURE(offset % kPageBytes == 0 && pages.size() % kPageBytes == 0 &&
               reinterpret_cast<uintptr_t>(pages.data()) % kPageBytes == 0,
           "write_pages wants whole pages");
    return write_all(direct_ ? *direct_ : fd_, offset, pages);
  }
  Result<void> sync() override {
    if (::fsync(fd_.get()) != 0) return system_error(path_, "sync");
    return {};
  }
  Result<void> close() override {
    direct_.reset();
    if (::close(fd_.release()) != 0 && errno != EINTR) return system_error(path_, "close");
    return {};
  }

 private:
  Result<void> write_all(const Descriptor& fd, uint64_t offset, std::span<const std::byte> bytes) {
    ENSURE(offset <= size_ && bytes.size() <= size_ - offset, "write beyond the bytes that were taken");
    return write_at_offset(path_, fd, offset, bytes);
  }

  const Path path_;
  Descriptor fd_;
  std::optional<Descriptor> direct_;
  const uint64_t size_;
};

class PosixLock : public FileLock {
 public:
  explicit PosixLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  Descriptor fd_;
};

/// Makes the names in a directory durable.
Result<void> sync_directory(const Path& directory) {
  const Path path = directory.empty() ? Path(".") : directory;
  const Descriptor fd = TRY(open_descriptor(path, O_RDONLY | O_DIRECTORY));
  // Some file systems have nothing to sync in a directory and say EINVAL.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return system_error(path, "sync");
  return {};
}

struct OpenFile {
  Descriptor fd;
  uint64_t size;
};

Result<OpenFile> open_file(const Path& path) {
  // O_NONBLOCK: opening a named pipe must not hang before it is refused below.
  Descriptor fd = TRY(open_descriptor(path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return system_error(path, "stat");
  if (!S_ISREG(status.st_mode))
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: {}, wanted a file", path.string(),
                             S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe")};
  return OpenFile{std::move(fd), static_cast<uint64_t>(status.st_size)};
}

class PosixStorage : public Storage {
 public:
  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override {
    auto [fd, size] = TRY(open_file(path));
    return std::unique_ptr<ReadableFile>(std::make_unique<PosixReadableFile>(path, std::move(fd), size));
  }

  Result<std::unique_ptr<ReadableFile>> open_direct(const Path& path) override {
    auto [fd, size] = TRY(open_file(path));
    Result<Descriptor> direct = open_descriptor(path, O_RDONLY | O_DIRECT);
    // Some file systems take the flag and then refuse the reads: one page tells.
    alignas(4096) static thread_local std::byte page[4096];
    if (!direct || ::pread(direct->get(), page, sizeof page, 0) < 0)
      return std::unique_ptr<ReadableFile>(std::make_unique<PosixReadableFile>(path, std::move(fd), size));
    return std::unique_ptr<ReadableFile>(
        std::make_unique<DirectFile>(path, std::move(fd), std::move(direct).value(), size));
  }

  Result<std::unique_ptr<WritableFile>> create(const Path& path) override {
    Descriptor fd = TRY(open_descriptor(path, O_WRONLY | O_CREAT | O_TRUNC));
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(path, std::move(fd)));
  }

  Result<std::unique_ptr<WritableFile>> open_to_append(const Path& path) override {
    Descriptor fd = TRY(open_descriptor(path, O_WRONLY | O_CREAT));
    const off_t end = ::lseek(fd.get(), 0, SEEK_END);
    if (end < 0) return system_error(path, "seek");
    return std::unique_ptr<WritableFile>(
        std::make_unique<PosixWritableFile>(path, std::move(fd), static_cast<uint64_t>(end)));
  }

  Result<std::unique_ptr<WritableFile>> create_direct(const Path& path, uint64_t bytes) override {
    Descriptor fd = TRY(open_descriptor(path, O_WRONLY | O_CREAT | O_TRUNC));
    int failed;
    do {
      failed = bytes == 0 ? 0 : ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
    } while (failed == EINTR);
    if (failed != 0) {
      errno = failed;
      Error error = system_error(path, fmt::format("taking {} bytes", bytes));
      ::unlink(path.c_str());
      return error;
    }
    std::optional<Descriptor> direct;
    if (Result<Descriptor> opened = open_descriptor(path, O_WRONLY | O_DIRECT)) {
      // Some file systems take the flag and then refuse the writes: one page of the zeros that are there
      // tells.
      alignas(4096) static const std::byte page[4096] = {};
      if (bytes >= sizeof page && ::pwrite(opened->get(), page, sizeof page, 0) == sizeof page)
        direct.emplace(std::move(opened).value());
    }
    return std::unique_ptr<WritableFile>(
        std::make_unique<PosixPagedFile>(path, std::move(fd), std::move(direct), bytes));
  }

  Result<void> rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return system_error(from, fmt::format("rename to {}", to.string()));
    return sync_directory(to.parent_path());
  }

  Result<void> remove(const Path& path) override {
    if (::unlink(path.c_str()) != 0) return system_error(path, "remove");
    return {};
  }

  bool exists(const Path& path) override { return ::access(path.c_str(), F_OK) == 0; }

  Result<std::vector<FileEntry>> list(const Path& directory) override {
    DIR* stream = ::opendir(directory.c_str());
    if (stream == nullptr) return system_error(directory, "list");
    std::vector<FileEntry> entries;
    while (const dirent* entry = ::readdir(stream)) {
      struct stat status;
      // One that has gone since is not there.
      if (::fstatat(::dirfd(stream), entry->d_name, &status, 0) != 0 || !S_ISREG(status.st_mode)) continue;
      entries.push_back({entry->d_name, static_cast<uint64_t>(status.st_size),
                         int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
    }
    ::closedir(stream);
    return entries;
  }

  Result<void> make_directory(const Path& path) override {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed)
      return Error{Code::kIo,
                   fmt::format("{}: making the directory failed: {}", path.string(), failed.message())};
    return {};
  }

  Result<void> touch(const Path& path) override {
    if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return system_error(path, "touch");
    return {};
  }

  Result<std::unique_ptr<FileLock>> lock(const Path& path, bool wait) override {
    Descriptor fd = TRY(open_descriptor(path, O_RDWR | O_CREAT));
    int failed;
    do {
      failed = ::flock(fd.get(), wait ? LOCK_EX : LOCK_EX | LOCK_NB);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0 && errno == EWOULDBLOCK) return std::unique_ptr<FileLock>();
    if (failed != 0) return system_error(path, "lock");
    return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(fd)));
  }
};

}  // namespace

std::unique_ptr<Storage> make_posix_storage() {
  return std::make_unique<PosixStorage>();
}

}  // namespace forebay
