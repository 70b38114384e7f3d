/// What a fuzz target provides: the libFuzzer entry point, and inputs to start from.
///
///   forebay_fuzz(thing SOURCE thing_fuzz.cpp LINK forebay_thing)      in CMakeLists.txt
///   build/release/tests/fuzz/thing_fuzz --iterations 100000 --seed 7  mutations without libFuzzer
///   build/release/tests/fuzz/thing_fuzz --write-seeds corpus          then, in a -DFOREBAY_FUZZ=ON build:
///   build/fuzz/tests/fuzz/thing_libfuzzer corpus                      coverage-guided
///   build/release/tests/fuzz/thing_fuzz --replay crash-thing          one input again
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// Feeds one input to the parser under test; returns 0. A finding is an abort, a sanitizer report or a hang.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

struct FuzzSeeds {
  std::vector<std::string> inputs;  // valid or nearly valid; at least one
  std::vector<std::string> tokens;  // fragments of the format that mutations insert
};
FuzzSeeds fuzz_seeds();

/// States a property of the code under test; a violation is a finding.
#define FUZZ_ASSERT(condition)                                                       \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (0)
