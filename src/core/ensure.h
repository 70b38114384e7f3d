/// ENSURE stays on in release and aborts with a message: for broken invariants, never for user input.
#pragma once

#include <string_view>

namespace forebay {

[[noreturn]] void ensure_failed(const char* expression, const char* file, int line, std::string_view message);

}  // namespace forebay

#define ENSURE(condition, message)                                         \
  do {                                                                     \
    if (__builtin_expect(!(condition), 0))                                 \
      ::forebay::ensure_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (0)

#ifdef NDEBUG
#define DEBUG_ENSURE(condition, message) \
  do {                                   \
  } while (0)
#else
#define DEBUG_ENSURE(condition, message) ENSURE(condition, message)
#endif
