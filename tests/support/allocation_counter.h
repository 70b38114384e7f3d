/// Counts what the whole process takes from the heap: for tests of what must take nothing.
#pragma once

#include <cstdint>
#include <string>

namespace forebay::testing {

/// From construction on, all threads. One at a time. A program that links it has malloc replaced, except
/// under sanitizers, which replace it themselves.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();

  /// False: nothing is counted in this build.
  static bool works();
  int64_t count() const;
  /// Who asked first: a stack of addresses for addr2line, with names where the program exports them.
  std::string first() const;
};

}  // namespace forebay::testing
