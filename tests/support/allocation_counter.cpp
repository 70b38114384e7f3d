#include "support/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <execinfo.h>

namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> n_allocations = 0;
constexpr int kMostFrames = 24;
void* frames[kMostFrames];
std::atomic<int> n_frames = 0;

/// Where the first call came from. Tracing may itself allocate, once counting is off.
[[maybe_unused]] void note() {
  if (!counting.load(std::memory_order_relaxed)) return;
  if (n_allocations.fetch_add(1) > 0) return;
  counting = false;
  n_frames = ::backtrace(frames, kMostFrames);
  counting = true;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
constexpr bool kWorks = false;
#else
constexpr bool kWorks = true;

extern "C" {
void* __libc_malloc(size_t n);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* memory, size_t n);
void* __libc_memalign(size_t alignment, size_t n);

void* malloc(size_t n) {
  note();
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  note();
  return __libc_calloc(n, size);
}
void* realloc(void* memory, size_t n) {
  note();
  return __libc_realloc(memory, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** memory, size_t alignment, size_t n) {
  note();
  *memory = __libc_memalign(alignment, n);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

namespace forebay::testing {

AllocationCounter::AllocationCounter() {
  void* warm[1];
  ::backtrace(warm, 1);  // its first call loads a library
  n_allocations = 0;
  n_frames = 0;
  counting = true;
}

AllocationCounter::~AllocationCounter() {
  counting = false;
}

bool AllocationCounter::works() {
  return kWorks;
}

int64_t AllocationCounter::count() const {
  return n_allocations;
}

std::string AllocationCounter::first() const {
  counting = false;
  std::string text;
  char** names = ::backtrace_symbols(frames, n_frames);
  for (int i = 0; i < n_frames; ++i) text += std::string(names[i]) + "\n";
  std::free(names);
  return text;
}

}  // namespace forebay::testing
