#include "session/pieces.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/bytes.h"
#include "core/hash.h"
#include "core/page_range.h"

namespace forebay {

uint64_t PieceSums::total() const {
  std::vector<std::byte> bytes;
  for (uint64_t sum : sums_) put_le(bytes, sum);
  return fast_checksum(bytes);
}

Result<void> for_each_piece(size_t n, int n_threads,
                            FunctionRef<Result<void>(size_t i, std::span<std::byte> block)> body) {
  constexpr size_t kBlockBytes = kPieceBytes + 2 * kPageBytes;
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<Error> first_error;
  const auto fail = [&](Error error) {
    const std::lock_guard lock(mutex);
    if (!first_error) first_error = std::move(error);
    failed = true;
  };
  const auto work = [&] {
    const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kPageBytes, kBlockBytes),
                                                            &std::free);
    if (block == nullptr) return fail({Code::kOutOfMemory, "no memory for a block of a session file"});
    const std::span<std::byte> bytes(static_cast<std::byte*>(block.get()), kBlockBytes);
    for (size_t i = next++; i < n && !failed; i = next++)
      if (Result<void> done = body(i, bytes); !done) fail(std::move(done).error());
  };
  {
    std::vector<std::jthread> others;
    for (size_t t = 1; t < std::min(n, static_cast<size_t>(std::max(n_threads, 1))); ++t)
      others.emplace_back(work);
    work();
  }
  if (first_error) return std::move(*first_error);
  return {};
}

}  // namespace forebay
