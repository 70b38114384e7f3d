/// What every kernel call needs besides its tensors: threads, the instruction set to use, the precision of
/// activations, scratch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"
#include "kernels/int8_rows.h"
#include "kernels/isa.h"

namespace forebay {

/// What a matrix product reads of its inputs.
enum class Activations {
  kExact,  // f32
  kInt8,   // rounded to 8 bits where the matrix is of a block format (kernels/int8_rows.h); F32, F16 and BF16
           // matrices still read f32
};

/// Confined, like the pool it drives. Kernels take it first, as a stream would be taken on a device.
class KernelContext {
 public:
  KernelContext(ThreadPool& pool, Isa isa) : pool_(&pool), isa_(isa), scratch_(pool.n_threads()) {}

  ThreadPool& pool() { return *pool_; }
  Isa isa() const { return isa_; }

  Activations activations() const { return activations_; }
  void set_activations(Activations activations) { activations_ = activations; }

  /// Whether integer dot products may use AVX-512 VNNI. It changes no bit, so it is not an Isa; tests turn it
  /// off.
  bool use_vnni() const { return use_vnni_; }
  void set_use_vnni(bool use) { use_vnni_ = use && has_vnni(); }

  /// At least n floats for one thread's use inside one task, on a cache line; contents are undefined.
  float* scratch(int thread, int64_t n) {
    constexpr uintptr_t kLine = 64;
    std::vector<float>& s = scratch_[thread];
    if (static_cast<int64_t>(s.size()) < n + static_cast<int64_t>(kLine / sizeof(float)))
      s.resize(n + kLine / sizeof(float));
    return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(s.data()) + kLine - 1) / kLine * kLine);
  }

  /// Takes what tasks will ask scratch() for, for every thread: which of them gets a task is chance, and
  /// decode must not allocate because a thread's turn came late.
  void reserve_scratch(int64_t n) {
    if (n <= reserved_) return;
    reserved_ = n;
    for (int thread = 0; thread < pool_->n_threads(); ++thread) scratch(thread, n);
  }

  /// At least n floats that all tasks of one call share; contents are undefined.
  float* shared_scratch(int64_t n) {
    if (static_cast<int64_t>(shared_.size()) < n) shared_.resize(n);
    return shared_.data();
  }

  /// The rounded inputs of the product that is running, and of the second one inside a feed-forward.
  Int8Rows& int8_inputs() { return int8_inputs_; }
  Int8Rows& int8_hidden() { return int8_hidden_; }

 private:
  ThreadPool* pool_;
  Isa isa_;
  Activations activations_ = Activations::kExact;
  bool use_vnni_ = has_vnni();
  std::vector<std::vector<float>> scratch_;
  int64_t reserved_ = 0;
  std::vector<float> shared_;
  Int8Rows int8_inputs_, int8_hidden_;
};

}  // namespace forebay
