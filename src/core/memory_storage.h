/// A Storage of files that exist in memory only: for what one part of the program hands another in the form
/// of a file, for fuzz targets, and for tests that write a lot.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/ensure.h"
#include "core/storage.h"

namespace forebay {

/// Thread-compatible. What it opened stays valid after remove and create, as with the system's files.
class MemoryStorage : public Storage {
 public:
  using Bytes = std::shared_ptr<std::string>;

  void put(const Path& path, std::string bytes) {
    files_[path] = std::make_shared<std::string>(std::move(bytes));
  }
  /// The file's bytes; it must exist.
  const std::string& get(const Path& path) const { return *files_.at(path); }
  size_t n_files() const { return files_.size(); }

  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override {
    const auto at = files_.find(path);
    if (at == files_.end()) return Error{Code::kNotFound, path.string() + ": open failed: no such file"};
    return std::unique_ptr<ReadableFile>(std::make_unique<Readable>(path, at->second));
  }

  Result<std::unique_ptr<WritableFile>> create(const Path& path) override {
    put(path, {});
    return std::unique_ptr<WritableFile>(std::make_unique<Writable>(path, files_[path]));
  }

  Result<void> rename(const Path& from, const Path& to) override {
    const auto node = files_.extract(from);
    if (node.empty()) return Error{Code::kNotFound, from.string() + ": rename failed: no such file"};
    files_[to] = node.mapped();
    return {};
  }

  Result<void> remove(const Path& path) override {
    if (files_.erase(path) == 0)
      return Error{Code::kNotFound, path.string() + ": remove failed: no such file"};
    return {};
  }

  bool exists(const Path& path) override { return files_.contains(path); }

 private:
  struct View : Mapping {
    explicit View(Bytes b) : file(std::move(b)) {}
    std::span<const std::byte> bytes() const override { return std::as_bytes(std::span(*file)); }
    Bytes file;
  };

  struct Readable : ReadableFile {
    Readable(Path p, Bytes b) : name(std::move(p)), file(std::move(b)) {}
    const Path& path() const override { return name; }
    uint64_t size() const override { return file->size(); }
    Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
      if (offset > file->size() || out.size() > file->size() - offset)
        return Error{Code::kIo, name.string() + ": short read"};
      std::copy_n(std::as_bytes(std::span(*file)).begin() + static_cast<std::ptrdiff_t>(offset), out.size(),
                  out.begin());
      return {};
    }
    Result<std::unique_ptr<Mapping>> map() override {
      return std::unique_ptr<Mapping>(std::make_unique<View>(file));
    }
    Path name;
    Bytes file;
  };

  struct Writable : WritableFile {
    Writable(Path p, Bytes b) : name(std::move(p)), file(std::move(b)) {}
    const Path& path() const override { return name; }
    uint64_t position() const override { return file->size(); }
    Result<void> append(std::span<const std::byte> bytes) override {
      file->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
      ENSURE(offset <= file->size() && bytes.size() <= file->size() - offset,
             "write_at beyond what was appended");
      file->replace(offset, bytes.size(), reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    Result<void> sync() override { return {}; }
    Result<void> close() override { return {}; }
    Path name;
    Bytes file;
  };

  std::map<Path, Bytes> files_;
};

}  // namespace forebay
