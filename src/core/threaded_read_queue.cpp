#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/fifo.h"
#include "core/read_queue.h"
#include "core/storage.h"

namespace forebay {
namespace {

class ThreadedReadQueue : public ReadQueue {
 public:
  explicit ThreadedReadQueue(int n_threads) {
    finished_.reserve(kUsualReads);
    waiting_.reserve(kUsualReads);
    for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { work(); });
  }

  ~ThreadedReadQueue() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
  }

  void submit(std::span<const QueuedRead> reads) override {
    {
      std::lock_guard lock(mutex_);
      waiting_.push(reads);
      n_under_way_ += reads.size();
    }
    if (reads.size() == 1)
      wake_.notify_one();
    else
      wake_.notify_all();
  }

  void collect(std::vector<FinishedRead>& finished, bool wait) override {
    std::unique_lock lock(mutex_);
    if (wait) ended_.wait(lock, [this] { return !finished_.empty() || n_under_way_ == 0; });
    n_under_way_ -= finished_.size();
    std::move(finished_.begin(), finished_.end(), std::back_inserter(finished));
    finished_.clear();
  }

  ReadEngine engine() const override { return ReadEngine::kThreads; }

 private:
  void work() {
    while (true) {
      QueuedRead read;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        read = waiting_.pop();
      }
      FinishedRead done{read.tag, read.file->read_around(read.offset, read.n, read.buffer)};
      {
        std::lock_guard lock(mutex_);
        finished_.push_back(std::move(done));
      }
      ended_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  Fifo<QueuedRead> waiting_;
  std::vector<FinishedRead> finished_;
  size_t n_under_way_ = 0;  // submitted and not collected
  bool closing_ = false;
  std::vector<std::jthread> threads_;  // last: they end before what they use goes
};

}  // namespace

std::unique_ptr<ReadQueue> make_threaded_read_queue(int n_threads) {
  return std::make_unique<ThreadedReadQueue>(n_threads);
}

}  // namespace forebay
