/// Reads that run on threads of their own, many at a time: what keeps a drive's queue full.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace forebay {

/// Thread-safe. Jobs start in the order they were submitted; the destructor waits for those that were.
class ReadPool {
 public:
  explicit ReadPool(int n_threads);
  ~ReadPool();
  ReadPool(const ReadPool&) = delete;

  void submit(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace forebay
