#include "core/ensure.h"

#include <cstdio>
#include <cstdlib>

namespace forebay {

// Straight to stderr: the log may be the thing that is broken.
void ensure_failed(const char* expression, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "bug: %.*s (%s) at %s:%d\n", static_cast<int>(message.size()), message.data(),
               expression, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace forebay
