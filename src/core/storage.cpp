#include "core/storage.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Reads the whole file into a resizable container of bytes or chars.
template <typename Container>
Result<Container> read_whole(Storage& storage, const Path& path, uint64_t limit_bytes) {
  std::unique_ptr<ReadableFile> file = TRY(storage.open(path));
  const uint64_t size = file->size();
  if (size > limit_bytes)
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: {} bytes, at most {} are read at once", path.string(), size, limit_bytes)};
  Container content;
  try {
    content.resize(size);
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, fmt::format("{}: no memory for its {} bytes", path.string(), size)};
  }
  TRY(file->read_at(0, std::as_writable_bytes(std::span(content.data(), content.size()))));
  return content;
}

}  // namespace

namespace {

Error no_directories(const Path& path) {
  return {Code::kUnsupported, fmt::format("{}: this storage has no directories", path.string())};
}

}  // namespace

Result<std::unique_ptr<WritableFile>> Storage::create_direct(const Path& path, uint64_t bytes) {
  std::unique_ptr<WritableFile> file = TRY(create(path));
  const std::vector<std::byte> zeros(std::min<uint64_t>(bytes, 1 << 20));
  for (uint64_t done = 0; done < bytes; done += zeros.size())
    TRY(file->append(std::span(zeros).first(std::min<uint64_t>(zeros.size(), bytes - done))));
  return file;
}
Result<std::unique_ptr<WritableFile>> Storage::open_to_append(const Path& path) {
  std::vector<std::byte> before;
  if (exists(path)) before = TRY(read_file(*this, path));
  std::unique_ptr<WritableFile> file = TRY(create(path));
  TRY(file->append(before));
  return file;
}
Result<std::vector<FileEntry>> Storage::list(const Path& directory) {
  return no_directories(directory);
}
Result<void> Storage::make_directory(const Path& path) {
  return no_directories(path);
}
Result<void> Storage::touch(const Path& path) {
  return no_directories(path);
}
Result<std::unique_ptr<FileLock>> Storage::lock(const Path& path, bool) {
  return no_directories(path);
}

Result<std::vector<std::byte>> read_file(Storage& storage, const Path& path, uint64_t limit_bytes) {
  return read_whole<std::vector<std::byte>>(storage, path, limit_bytes);
}

Result<std::string> read_text(Storage& storage, const Path& path, uint64_t limit_bytes) {
  return read_whole<std::string>(storage, path, limit_bytes);
}

}  // namespace forebay
