#include "plan/probe.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "core/page_range.h"
#include "core/read_queue.h"
#include "kernels/matmul.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kPassBytes = 1 << 20;

}  // namespace

namespace probe_detail {

uint64_t sum_ref(const std::byte* data, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, data + at, sizeof word);
    sum += word;
  }
  return sum;
}

}  // namespace probe_detail

Result<ProbeBuffer> ProbeBuffer::allocate(uint64_t usable_bytes, ThreadPool& pool, MemoryBudget& budget) {
  const uint64_t wanted = std::clamp<uint64_t>(usable_bytes / 8, kPassBytes, kLargest);
  ProbeBuffer probe;
  probe.buffer_ = TRY(Buffer::allocate(budget, wanted / kPassBytes * kPassBytes, "probe"));
  // Untouched pages would all be the same zeros. 0x11 bytes are small normal numbers to every format.
  pool.parallel_for(static_cast<int64_t>(probe.bytes()), kPassBytes, [&](int64_t begin, int64_t end, int) {
    std::memset(probe.buffer_.data() + begin, 0x11, static_cast<size_t>(end - begin));
  });
  return probe;
}

double ProbeBuffer::measure_reading(ThreadPool& pool, Isa isa, ProbeDuration duration) const {
  const auto sum = isa == Isa::kReference ? probe_detail::sum_ref : probe_detail::sum_avx2;
  std::atomic<uint64_t> total = 0;
  uint64_t bytes_read = 0;
  const Clock::time_point start = Clock::now();
  Seconds elapsed{0};
  while (elapsed < duration) {
    pool.parallel_for(static_cast<int64_t>(bytes()), kPassBytes, [&](int64_t begin, int64_t end, int) {
      total.fetch_add(sum(buffer_.data() + begin, static_cast<uint64_t>(end - begin)),
                      std::memory_order_relaxed);
    });
    bytes_read += bytes();
    elapsed = Clock::now() - start;
  }
  return static_cast<double>(bytes_read) / elapsed.count();
}

double ProbeBuffer::measure_weights(KernelContext& kernels, DType type, ProbeDuration duration) const {
  constexpr int64_t kColumns = 2048;  // whole blocks of every type
  MatrixView w;
  w.type = type;
  w.n_cols = kColumns;
  w.row_stride_bytes = row_bytes(type, kColumns);
  // Like a matrix of a model: some MiB at a time, and the next ones are other ones.
  const auto piece = std::min<int64_t>(static_cast<int64_t>(bytes()), 16 << 20);
  w.n_rows = std::max<int64_t>(1, piece / w.row_stride_bytes);
  const int64_t matrix_bytes = w.n_rows * w.row_stride_bytes;
  const std::vector<float> x(kColumns, 1.0f);
  std::vector<float> y(static_cast<size_t>(w.n_rows));
  uint64_t bytes_read = 0;
  int64_t at = 0;
  const Clock::time_point start = Clock::now();
  Seconds elapsed{0};
  while (elapsed < duration) {
    if (at + matrix_bytes > static_cast<int64_t>(bytes())) at = 0;
    w.data = buffer_.data() + at;
    at += matrix_bytes;
    matmul(kernels, w, TensorView<const float>(x.data(), 1, kColumns),
           TensorView<float>(y.data(), 1, w.n_rows));
    bytes_read += static_cast<uint64_t>(matrix_bytes);
    elapsed = Clock::now() - start;
  }
  return static_cast<double>(bytes_read) / elapsed.count();
}

Result<DiskRate> measure_disk(ReadableFile& file, std::span<const uint64_t> places, const DiskProbe& probe,
                              MemoryBudget& budget, std::stop_token stop) {
  if (places.empty())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: no place for a read of {} bytes", file.path().string(), probe.blob_bytes)};
  std::vector<uint64_t> order(places.begin(), places.end());
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));

  const uint64_t room = (probe.blob_bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
  const int n = std::max(1, probe.n_in_flight);
  std::vector<Buffer> buffers;
  for (int i = 0; i < n; ++i) buffers.push_back(TRY(Buffer::allocate(budget, room, "disk probe")));
  std::vector<Clock::time_point> begins(buffers.size());
  // Declared after the buffers: its reads end before they go.
  const std::unique_ptr<ReadQueue> queue = TRY(make_read_queue(ReadEngine::kAuto, n));

  DiskRate rate{.blob_bytes = probe.blob_bytes,
                .n_in_flight = n,
                .n_reads = 0,
                .bytes_per_second = 0,
                .slowest_seconds = 0,
                .direct = file.direct(),
                .engine = queue->engine()};
  uint64_t next = 0;
  const auto read_into = [&](uint64_t slot) {
    const Buffer& buffer = buffers[slot];
    begins[slot] = Clock::now();
    const QueuedRead read{.file = &file,
                          .offset = order[next++ % order.size()],
                          .n = probe.blob_bytes,
                          .buffer = {buffer.data(), buffer.bytes()},
                          .tag = slot};
    queue->submit({&read, 1});
  };
  const Clock::time_point start = Clock::now();
  Seconds elapsed{0};
  for (uint64_t slot = 0; slot < buffers.size(); ++slot) read_into(slot);
  std::vector<FinishedRead> finished;
  while (elapsed < probe.duration) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "interrupted"};
    finished.clear();
    queue->collect(finished, /*wait=*/true);
    const Clock::time_point now = Clock::now();
    elapsed = now - start;
    for (const FinishedRead& read : finished) {
      if (!read.bytes) return read.bytes.error();
      ++rate.n_reads;
      rate.slowest_seconds = std::max(rate.slowest_seconds, Seconds(now - begins[read.tag]).count());
      read_into(read.tag);
    }
  }
  rate.bytes_per_second = static_cast<double>(rate.n_reads * probe.blob_bytes) / elapsed.count();
  return rate;
}

}  // namespace forebay
