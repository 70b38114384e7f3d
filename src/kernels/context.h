/// What every kernel call needs besides its tensors: threads, the instruction set to use, scratch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"
#include "kernels/isa.h"

namespace forebay {

/// Confined, like the pool it drives. Kernels take it first, as a stream would be taken on a device.
class KernelContext {
 public:
  KernelContext(ThreadPool& pool, Isa isa) : pool_(&pool), isa_(isa), scratch_(pool.n_threads()) {}

  ThreadPool& pool() { return *pool_; }
  Isa isa() const { return isa_; }

  /// At least n floats for one thread's use inside one task; contents are undefined.
  float* scratch(int thread, int64_t n) {
    std::vector<float>& s = scratch_[thread];
    if (static_cast<int64_t>(s.size()) < n) s.resize(n);
    return s.data();
  }

 private:
  ThreadPool* pool_;
  Isa isa_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace forebay
