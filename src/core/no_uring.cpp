// The twin of uring_read_queue.cpp for builds without liburing.
#include "core/read_queue.h"

namespace forebay {

std::unique_ptr<ReadQueue> make_uring_read_queue(int) {
  return nullptr;
}

}  // namespace forebay
