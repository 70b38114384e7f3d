#include "core/storage.h"

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

Result<std::vector<std::byte>> read_file(Storage& storage, const Path& path, uint64_t limit_bytes) {
  return read_whole<std::vector<std::byte>>(storage, path, limit_bytes);
}

Result<std::string> read_text(Storage& storage, const Path& path, uint64_t limit_bytes) {
  return read_whole<std::string>(storage, path, limit_bytes);
}

}  // namespace forebay
