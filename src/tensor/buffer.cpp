#include "tensor/buffer.h"

#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace forebay {

Result<Buffer> Buffer::allocate(MemoryBudget& budget, uint64_t bytes, std::string purpose) {
  Buffer buffer;
  buffer.reservation_ = TRY(budget.reserve(bytes, purpose));
  if (bytes == 0) return buffer;
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return Error{Code::kOutOfMemory, fmt::format("{}: the system refused {} bytes", purpose, bytes)};
  buffer.data_ = static_cast<std::byte*>(data);
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
