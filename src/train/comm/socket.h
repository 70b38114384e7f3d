/// TCP sockets with deadlines.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "forebay/result.h"

#include "train/comm/timeouts.h"

namespace forebay::train {

inline constexpr Deadline kNoDeadline = Deadline::max();

/// One thread may send while another receives. Errors are kIo: the system's words, "connection closed", or
/// "no answer within ...".
class Socket {
 public:
  Socket() = default;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// On all addresses; port 0 takes any.
  static Result<Socket> listen(int port);
  /// Tries again while nobody listens there, until the deadline. The error names host and port.
  static Result<Socket> connect(const std::string& host, int port, Deadline deadline);

  Result<Socket> accept(Deadline deadline);
  Result<void> send(std::span<const uint8_t> bytes, Deadline deadline);
  /// Fills `bytes`.
  Result<void> recv(std::span<uint8_t> bytes, Deadline deadline);
  /// What is there, up to bytes.size(); 0: nothing now.
  Result<size_t> recv_some(std::span<uint8_t> bytes);

  /// Wakes whoever waits on it, here and at the other end. Thread-safe.
  void shut() const;
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int local_port() const;
  /// The address of this end, as peers on its network can reach it.
  std::string local_address() const;

 private:
  explicit Socket(int fd) : fd_(fd) {}
  Result<void> wait(int events, Deadline deadline) const;

  int fd_ = -1;
};

}  // namespace forebay::train
