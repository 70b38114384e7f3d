#include "tensor/buffer.h"

#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "core/huge_pages.h"
#include "core/page_range.h"

namespace forebay {

namespace {

/// Null where the system refuses.
std::byte* map_memory(uint64_t bytes) {
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

/// The same from a border of huge pages on.
std::byte* map_huge_pages(uint64_t bytes) {
  std::byte* data = map_memory(bytes + kHugePageBytes);
  if (data == nullptr) return nullptr;
  const uint64_t before =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(data) % kHugePageBytes) % kHugePageBytes;
  const uint64_t kept = pages_around(0, bytes).length;
  if (before > 0) munmap(data, before);
  munmap(data + before + kept, bytes + kHugePageBytes - before - kept);
  ask_for_huge_pages({data + before, kept});
  return data + before;
}

}  // namespace

Result<Buffer> Buffer::allocate(MemoryBudget& budget, uint64_t bytes, std::string purpose, PageSize pages) {
  Buffer buffer;
  buffer.reservation_ = TRY(budget.reserve(bytes, purpose));
  if (bytes == 0) return buffer;
  buffer.data_ = pages == PageSize::kHuge ? map_huge_pages(bytes) : map_memory(bytes);
  if (buffer.data_ == nullptr)
    return Error{Code::kOutOfMemory, fmt::format("{}: the system refused {} bytes", purpose, bytes)};
  buffer.bytes_ = bytes;
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      reservation_(std::move(other.reservation_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(reservation_, other.reservation_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace forebay
