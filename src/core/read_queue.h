/// Many reads under way at once: what keeps a drive busy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "forebay/io.h"
#include "forebay/result.h"

namespace forebay {

class ReadableFile;

/// A read_around (core/storage.h) that somebody else does.
struct QueuedRead {
  ReadableFile* file = nullptr;
  uint64_t offset = 0;
  uint64_t n = 0;
  std::span<std::byte> buffer;
  uint64_t tag = 0;  // the caller's
};

struct FinishedRead {
  uint64_t tag = 0;
  Result<std::span<const std::byte>> bytes;  // in the read's buffer
};

/// Confined. Files and buffers outlive the reads; the destructor waits for those under way.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  /// Reads start in this order, and all that fit the depth have started when it returns.
  virtual void submit(std::span<const QueuedRead> reads) = 0;
  /// Appends the reads that ended since the last call. `wait`: until at least one has, if any is under way.
  virtual void collect(std::vector<FinishedRead>& finished, bool wait) = 0;
  virtual ReadEngine engine() const = 0;
};

/// So many can be submitted and not collected before a queue allocates.
inline constexpr size_t kUsualReads = 1024;

/// At most `depth` reads are with the drive at once, 1 to 1024. Errors: kUnsupported when the engine asked
/// for is not to be had; kAuto always is.
Result<std::unique_ptr<ReadQueue>> make_read_queue(ReadEngine engine, int depth);

/// Threads of its own that call read_around: for every kind of file.
std::unique_ptr<ReadQueue> make_threaded_read_queue(int n_threads);

/// The kernel's own queue; files without a descriptor are read on the spot. Null where the system, or this
/// build, has none.
std::unique_ptr<ReadQueue> make_uring_read_queue(int depth);

}  // namespace forebay
