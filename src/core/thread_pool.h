/// A fixed set of threads that run one parallel loop at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "core/function_ref.h"

namespace forebay {

/// Confined: one thread at a time calls parallel_for. The caller's thread works too, so
/// ThreadPool(1) starts no thread and runs loops inline.
class ThreadPool {
 public:
  /// n_threads <= 0 takes the number of usable cores (affinity mask and cgroup quota). `pin` keeps every
  /// started thread on a core of its own, of those that the process may use; the caller's thread stays free,
  /// and so does everything else with more threads than cores. Good on a machine of one's own; on a busy one
  /// the system moves threads to where there is room.
  explicit ThreadPool(int n_threads, bool pin = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int n_threads() const;

  /// Calls body(begin, end, thread) over disjoint ranges covering [0, n), at most one range per thread at
  /// a time and none smaller than `grain` unless it is the last; returns when all are done.
  /// Every begin is a multiple of `grain`; n <= grain runs on the caller's thread as one range.
  /// `thread` in [0, n_threads) indexes per-thread scratch. The split depends on timing: a body must give
  /// each index the same bits wherever it runs. It must not throw, nor call parallel_for (a bug, aborts).
  void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t begin, int64_t end, int thread)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
