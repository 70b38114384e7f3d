#include "core/free_port.h"

#include <atomic>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace forebay {
namespace {

// Linux gives outgoing connections 32768 and up, unless told otherwise.
constexpr int kFirst = 20000, kCount = 12000;
constexpr int kTries = 500;

bool is_free(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  return bound;
}

}  // namespace

Result<int> free_port() {
  // Processes that start together begin far apart.
  static std::atomic<unsigned> next = static_cast<unsigned>(::getpid()) * 37u;
  for (int i = 0; i < kTries; ++i) {
    const int port = kFirst + static_cast<int>(next++ % kCount);
    if (is_free(port)) return port;
  }
  return Error{Code::kIo, "no free TCP port on this machine: name one"};
}

}  // namespace forebay
