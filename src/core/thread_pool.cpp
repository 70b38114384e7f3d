// Invariants
//  1. state holds the loop's number, whether it is open, and how many workers are inside it.
//  2. The loop's fields change only while it is closed with nobody inside; a worker reads them only after
//     entering, which succeeds only while it is open. So a worker that wakes late touches nothing, and
//     the caller waits for those inside, not for those asleep.
//  3. Whoever is about to sleep announces it (n_parked, caller_parked) before looking at state a last
//     time; whoever changes state looks at the announcement after. All four are sequentially
//     consistent, so at least one sees the other. The mutex closes the gap between that look and the sleep.
#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "core/cgroup.h"
#include "core/ensure.h"

namespace forebay {
namespace {

using Body = FunctionRef<void(int64_t, int64_t, int)>;

// Several chunks per thread even out cores of unequal speed.
constexpr int64_t kChunksPerThread = 8;
// About what parking and waking costs. Longer would steal from other programs on a busy machine.
constexpr auto kSpin = std::chrono::microseconds(30);

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// True once ready() is; false after kSpin without.
bool spin_until(FunctionRef<bool()> ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause_core();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

// state_: | loop number | open | workers inside |
constexpr uint64_t kOpen = 1ull << 31;
constexpr uint64_t kInsideMask = kOpen - 1;
uint64_t loop_number(uint64_t state) {
  return state >> 32;
}

}  // namespace

struct ThreadPool::Impl {
  Impl(int n, bool pin) : n_threads(n), may_spin(n <= n_usable_cores()) {
    workers.reserve(n - 1);
    for (int thread = 1; thread < n; ++thread) {
      workers.emplace_back([this, thread] { work(thread); });
      if (pin && may_spin) keep_on_core(workers.back(), thread);
    }
  }

  /// The thread-th of the cores that the process may use: the first is left to the caller.
  static void keep_on_core(std::thread& worker, int thread) {
    cpu_set_t usable, one;
    if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return;
    for (int core = 0, n = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &usable) || n++ != thread) continue;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      ::pthread_setaffinity_np(worker.native_handle(), sizeof one, &one);  // not allowed: not pinned
      return;
    }
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    wake_workers.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void run(int64_t loop_n, int64_t grain, Body loop_body) {
    n = loop_n;
    // A multiple of grain, so that every range begins at one.
    chunk = std::max<int64_t>(1, loop_n / (n_threads * kChunksPerThread * grain)) * grain;
    body = &loop_body;
    next.store(0, std::memory_order_relaxed);
    caller_core.store(::sched_getcpu(), std::memory_order_relaxed);
    state.store((loop_number(state.load(std::memory_order_relaxed)) + 1) << 32 | kOpen);
    if (n_parked.load() > 0) {
      { std::lock_guard lock(mutex); }
      wake_workers.notify_all();
    }
    run_chunks(0);
    state.fetch_and(~kOpen);
    wait_until_empty();
  }

  void run_chunks(int thread) {
    while (true) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= n) return;
      (*body)(begin, std::min(begin + chunk, n), thread);
    }
  }

  void wait_until_empty() {
    const auto empty = [this] { return (state.load() & kInsideMask) == 0; };
    if (empty() || (may_spin && spin_until(empty))) return;
    std::unique_lock lock(mutex);
    caller_parked.store(true);
    wake_caller.wait(lock, empty);
    caller_parked.store(false);
  }

  void work(int thread) {
    pthread_setname_np(pthread_self(), ("forebay-" + std::to_string(thread)).c_str());
    uint64_t seen = 0;
    while (wait_for_loop(seen)) {
      uint64_t current = state.load();
      seen = loop_number(current);
      while ((current & kOpen) != 0 && loop_number(current) == seen)
        if (state.compare_exchange_weak(current, current + 1)) {
          run_chunks(thread);
          leave();
          break;
        }
    }
  }

  /// False when the pool is being destroyed.
  bool wait_for_loop(uint64_t seen) {
    const auto changed = [&] { return loop_number(state.load()) != seen || stop.load(); };
    // On a busy machine a worker may wake on the caller's own core. Spinning there would keep off that core
    // the very thread it waits for.
    const bool shares_core = ::sched_getcpu() == caller_core.load(std::memory_order_relaxed);
    if (!may_spin || shares_core || !spin_until(changed)) {
      std::unique_lock lock(mutex);
      n_parked.fetch_add(1);
      wake_workers.wait(lock, changed);
      n_parked.fetch_sub(1);
    }
    return !stop.load();
  }

  void leave() {
    const uint64_t before = state.fetch_sub(1);
    if ((before & kInsideMask) != 1 || !caller_parked.load()) return;
    { std::lock_guard lock(mutex); }
    wake_caller.notify_one();
  }

  const int n_threads;
  const bool may_spin;  // not with more threads than cores: a spinning one would keep a working one waiting
  std::atomic<bool> busy = false;
  std::atomic<int> caller_core = -1;  // where the last loop was started

  // The loop (invariant 2).
  int64_t n = 0;
  int64_t chunk = 1;
  const Body* body = nullptr;

  // Each on its own cache line: all threads hammer both.
  alignas(64) std::atomic<int64_t> next = 0;
  alignas(64) std::atomic<uint64_t> state = 0;

  alignas(64) std::atomic<int> n_parked = 0;
  std::atomic<bool> caller_parked = false;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::condition_variable wake_workers;
  std::condition_variable wake_caller;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int n_threads, bool pin)
    : impl_(std::make_unique<Impl>(n_threads > 0 ? n_threads : n_usable_cores(), pin)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::n_threads() const {
  return impl_->n_threads;
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t, int)> body) {
  ENSURE(grain >= 1, "a grain below 1");
  if (n <= 0) return;
  ENSURE(!impl_->busy.exchange(true, std::memory_order_acquire),
         "parallel_for inside parallel_for, or from two threads");
  if (n <= grain || impl_->n_threads == 1)
    body(0, n, 0);
  else
    impl_->run(n, grain, body);
  impl_->busy.store(false, std::memory_order_release);
}

}  // namespace forebay
