/// A file to read from at random where there is no model yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "forebay/result.h"

#include "core/path.h"
#include "core/storage.h"

namespace forebay {

/// Its name is gone before its content is written: whatever ends the program also frees its bytes. Confined.
class ProbeFile {
 public:
  struct Options {
    uint64_t bytes = uint64_t{1} << 30;
    std::chrono::duration<double> longest{5};  // of writing: a slow disk gets a smaller file
  };
  /// Bytes written so far, bytes in all.
  using WriteCallback = std::function<void(uint64_t done, uint64_t total)>;

  /// Errors: kIo naming the folder when it is full (bytes free, bytes wanted) or not writable; kCancelled.
  static Result<ProbeFile> create(Storage& storage, const Path& folder, const Options& options,
                                  const WriteCallback& on_write, std::stop_token stop);

  ReadableFile& file() { return *file_; }
  uint64_t bytes() const { return bytes_; }
  /// The folder's file system is one of memory: there is no disk to measure.
  bool in_memory() const { return in_memory_; }
  /// Starts of blobs of this size, beside each other.
  std::vector<uint64_t> places(uint64_t blob_bytes) const;

 private:
  std::unique_ptr<ReadableFile> file_;
  uint64_t bytes_ = 0;
  bool in_memory_ = false;
};

}  // namespace forebay
