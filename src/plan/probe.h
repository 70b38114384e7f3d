/// Short measurements of the machine, at what decoding does: reading memory, multiplying weights, reading
/// experts. Each takes about as long as it is told to.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "forebay/io.h"
#include "forebay/result.h"

#include "core/memory_budget.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "kernels/context.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace forebay {

using ProbeDuration = std::chrono::duration<double>;

/// Memory to measure on, touched, larger than any cache wherever the machine has room for that. Confined.
class ProbeBuffer {
 public:
  static constexpr uint64_t kLargest = uint64_t{512} << 20;

  /// At most an eighth of `usable_bytes` and at most kLargest. Errors: kOutOfMemory.
  static Result<ProbeBuffer> allocate(uint64_t usable_bytes, ThreadPool& pool, MemoryBudget& budget);

  /// Bytes per second that all threads read together.
  double measure_reading(ThreadPool& pool, Isa isa, ProbeDuration duration) const;
  /// Bytes of weights per second that a product with one row takes in, weights not in any cache.
  double measure_weights(KernelContext& kernels, DType type, ProbeDuration duration) const;

  uint64_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

/// Reads of one size at random places of a file.
struct DiskProbe {
  uint64_t blob_bytes = 0;
  int n_in_flight = 8;
  ProbeDuration duration{0.5};
};

struct DiskRate {
  uint64_t blob_bytes = 0;
  int n_in_flight = 0;
  uint64_t n_reads = 0;
  double bytes_per_second = 0;
  double slowest_seconds = 0;  // of one read
  bool direct = false;         // past the page cache
  ReadEngine engine = ReadEngine::kAuto;
};

/// Where the blobs begin. Each place is read once, in random order, before any is read again.
/// Errors: kInvalidArgument without places; kIo; kCancelled.
Result<DiskRate> measure_disk(ReadableFile& file, std::span<const uint64_t> places, const DiskProbe& probe,
                              MemoryBudget& budget, std::stop_token stop);

namespace probe_detail {
/// The sum of 64-bit words; whole ones only. Its value is used so that no read can be left out.
uint64_t sum_ref(const std::byte* data, uint64_t bytes);
uint64_t sum_avx2(const std::byte* data, uint64_t bytes);
}  // namespace probe_detail

}  // namespace forebay
