#include "train/comm/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace forebay::train {
namespace {

constexpr Milliseconds kRetry{20};

Error system_error() {
  return {Code::kIo, std::strerror(errno)};
}

/// For poll: -1 without a deadline.
int milliseconds_until(Deadline deadline) {
  if (deadline == kNoDeadline) return -1;
  const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

void set_options(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> look_up(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Error{Code::kIo, ::gai_strerror(error)};
  return Addresses(found, &::freeaddrinfo);
}

sockaddr_in local_name(int fd) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other && fd_ >= 0) ::close(fd_);
  fd_ = this != &other ? std::exchange(other.fd_, -1) : fd_;
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Socket> Socket::listen(int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return system_error();
  const int one = 1;
  ::setsockopt(socket.fd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(socket.fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.fd_, 128) != 0)
    return system_error();
  return socket;
}

Result<Socket> Socket::connect(const std::string& host, int port, Deadline deadline) {
  std::string last = "no address";
  do {
    const Result<Addresses> addresses = look_up(host, port);
    if (!addresses) {
      last = addresses.error().message;
    } else {
      const addrinfo& address = **addresses;
      Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket.is_open()) return system_error();
      int error = ::connect(socket.fd_, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        const Result<void> ready = socket.wait(POLLOUT, deadline);
        socklen_t size = sizeof(error);
        if (!ready)
          error = ETIMEDOUT;
        else
          ::getsockopt(socket.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
      }
      // A port of this machine that nobody listens on may connect to itself.
      const bool is_itself = error == 0 && host == "127.0.0.1" && socket.local_port() == port;
      if (error == 0 && !is_itself) {
        set_options(socket.fd_);
        return socket;
      }
      last = std::strerror(is_itself ? ECONNREFUSED : error);
    }
    std::this_thread::sleep_for(kRetry);
  } while (Clock::now() < deadline);
  return Error{Code::kIo, fmt::format("{}:{}: {}", host, port, last)};
}

Result<void> Socket::wait(int events, Deadline deadline) const {
  pollfd entry = {.fd = fd_, .events = static_cast<short>(events), .revents = 0};
  for (;;) {
    const int n = ::poll(&entry, 1, milliseconds_until(deadline));
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return system_error();
    if (n == 0 && Clock::now() >= deadline) return Error{Code::kIo, "no answer in time"};
  }
}

Result<Socket> Socket::accept(Deadline deadline) {
  for (;;) {
    Socket socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      set_options(socket.fd_);
      return socket;
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return system_error();
    TRY(wait(POLLIN, deadline));
  }
}

Result<void> Socket::send(std::span<const uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      TRY(wait(POLLOUT, deadline));
    } else if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      return Error{Code::kIo, "connection closed"};
    } else if (n < 0 && errno != EINTR) {
      return system_error();
    }
  }
  return {};
}

Result<size_t> Socket::recv_some(std::span<uint8_t> bytes) {
  for (;;) {
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0 || errno == ECONNRESET) return Error{Code::kIo, "connection closed"};
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return system_error();
  }
}

Result<void> Socket::recv(std::span<uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const size_t n = TRY(recv_some(bytes));
    bytes = bytes.subspan(n);
    if (n == 0) TRY(wait(POLLIN, deadline));
  }
  return {};
}

void Socket::shut() const {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

int Socket::local_port() const {
  return ntohs(local_name(fd_).sin_port);
}

std::string Socket::local_address() const {
  char text[INET_ADDRSTRLEN] = {};
  const sockaddr_in address = local_name(fd_);
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

}  // namespace forebay::train
