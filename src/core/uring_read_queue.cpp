#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <liburing.h>

#include "core/ensure.h"
#include "core/fifo.h"
#include "core/page_range.h"
#include "core/read_queue.h"
#include "core/storage.h"

namespace forebay {
namespace {

class UringReadQueue : public ReadQueue {
 public:
  UringReadQueue(io_uring ring, int depth) : ring_(ring), slots_(static_cast<size_t>(depth)) {
    for (size_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
    on_the_spot_.reserve(kUsualReads);
    waiting_.reserve(kUsualReads);
  }

  ~UringReadQueue() override {
    waiting_.clear();
    std::vector<FinishedRead> dropped;
    while (free_.size() < slots_.size()) collect(dropped, true);
    ::io_uring_queue_exit(&ring_);
  }

  void submit(std::span<const QueuedRead> reads) override {
    waiting_.push(reads);
    start();
  }

  void collect(std::vector<FinishedRead>& finished, bool wait) override {
    const size_t before = finished.size();
    while (true) {
      std::move(on_the_spot_.begin(), on_the_spot_.end(), std::back_inserter(finished));
      on_the_spot_.clear();
      io_uring_cqe* entry = nullptr;
      while (::io_uring_peek_cqe(&ring_, &entry) == 0) {
        const size_t slot = ::io_uring_cqe_get_data64(entry);
        const int result = entry->res;
        ::io_uring_cqe_seen(&ring_, entry);
        finish(slot, result, finished);
      }
      start();
      if (!wait || finished.size() > before || !on_the_spot_.empty() || free_.size() == slots_.size()) {
        std::move(on_the_spot_.begin(), on_the_spot_.end(), std::back_inserter(finished));
        on_the_spot_.clear();
        return;
      }
      const int error = ::io_uring_wait_cqe(&ring_, &entry);
      ENSURE(error == 0 || error == -EINTR || error == -EAGAIN, "io_uring_wait_cqe");
    }
  }

  ReadEngine engine() const override { return ReadEngine::kUring; }

 private:
  struct Slot {
    QueuedRead read;
    PageRange range;   // of the file
    uint64_t got = 0;  // from the range's start
  };

  void start() {
    bool any = false;
    while (!waiting_.empty() && !free_.empty()) {
      const QueuedRead read = waiting_.pop();
      if (read.file->descriptor() < 0) {
        on_the_spot_.push_back({read.tag, read.file->read_around(read.offset, read.n, read.buffer)});
        continue;
      }
      const size_t slot = free_.back();
      free_.pop_back();
      const PageRange range =
          read.file->direct() ? pages_around(read.offset, read.n) : PageRange{read.offset, read.n, 0};
      ENSURE(range.length <= read.buffer.size(),
             "a queued read wants a page-aligned buffer with a page to spare");
      slots_[slot] = {read, range, 0};
      prepare(slot);
      any = true;
    }
    if (any) push();
  }

  void prepare(size_t slot) {
    const Slot& s = slots_[slot];
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      push();
      entry = ::io_uring_get_sqe(&ring_);
      ENSURE(entry != nullptr, "an io_uring that was submitted has room");
    }
    ::io_uring_prep_read(entry, s.read.file->descriptor(), s.read.buffer.data() + s.got,
                         static_cast<unsigned>(s.range.length - s.got), s.range.first + s.got);
    ::io_uring_sqe_set_data64(entry, slot);
  }

  void push() {
    int n;
    do {
      n = ::io_uring_submit(&ring_);
    } while (n == -EINTR || n == -EAGAIN || n == -EBUSY);
    ENSURE(n >= 0, "io_uring_submit");
  }

  void finish(size_t slot, int result, std::vector<FinishedRead>& finished) {
    Slot& s = slots_[slot];
    const QueuedRead& read = s.read;
    if (result == -EINTR || result == -EAGAIN) {
      prepare(slot);
      push();
      return;
    }
    if (result > 0) s.got += static_cast<uint64_t>(result);
    const uint64_t wanted = s.range.skip + read.n;
    const auto end = [&](Result<std::span<const std::byte>> bytes) {
      finished.push_back({read.tag, std::move(bytes)});
      free_.push_back(slot);
    };
    if (result < 0)
      return end(Error{Code::kIo,
                       fmt::format("{}: read of {} bytes at offset {} failed: {}", read.file->path().string(),
                                   read.n, read.offset, std::generic_category().message(-result))});
    if (s.got >= wanted) return end(std::span<const std::byte>(read.buffer.subspan(s.range.skip, read.n)));
    // A direct read goes on from a page border only; what ends inside a page is the end of the file.
    if (result == 0 || (read.file->direct() && s.got % kPageBytes != 0))
      return end(short_read(*read.file, read.offset, read.n, s.got - std::min(s.got, s.range.skip)));
    prepare(slot);
    push();
  }

  io_uring ring_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_;
  Fifo<QueuedRead> waiting_;
  std::vector<FinishedRead> on_the_spot_;
};

}  // namespace

std::unique_ptr<ReadQueue> make_uring_read_queue(int depth) {
  io_uring ring;
  if (::io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0) < 0) return nullptr;
  return std::make_unique<UringReadQueue>(ring, depth);
}

}  // namespace forebay
