// A connection per pair of processes. The higher rank connects to the lower one, and says who it is.
#include <algorithm>

#include <fmt/format.h>

#include "train/comm/transport.h"

namespace forebay::train {

void put_frame_header(const Frame& frame, std::span<uint8_t, kFrameHeaderBytes> out) {
  const auto n_bytes = static_cast<uint32_t>(frame.bytes.size());
  for (size_t i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(n_bytes >> (8 * i));
  out[4] = static_cast<uint8_t>(frame.lane);
  for (size_t i = 0; i < 8; ++i) out[5 + i] = static_cast<uint8_t>(frame.tag >> (8 * i));
}

Result<std::pair<Frame, size_t>> get_frame_header(std::span<const uint8_t, kFrameHeaderBytes> bytes) {
  if (bytes[4] > static_cast<uint8_t>(Lane::kCollective))
    return Error{Code::kCorrupt, fmt::format("frame in lane {}: 0 or 1", bytes[4])};
  std::pair<Frame, size_t> header;
  for (size_t i = 0; i < 4; ++i) header.second |= static_cast<size_t>(bytes[i]) << (8 * i);
  header.first.lane = static_cast<Lane>(bytes[4]);
  for (size_t i = 0; i < 8; ++i) header.first.tag |= static_cast<uint64_t>(bytes[5 + i]) << (8 * i);
  return header;
}

namespace {

class TcpTransport : public Transport {
 public:
  TcpTransport(Control& control, std::vector<Socket> sockets)
      : pg_(control.timeouts().pg), sockets_(std::move(sockets)) {}

  std::string name() const override { return "tcp"; }

  Result<void> write(int to, const Frame& frame, Deadline deadline) override {
    Socket& socket = sockets_[static_cast<size_t>(to)];
    uint8_t header[kFrameHeaderBytes];
    put_frame_header(frame, header);
    TRY(socket.send(header, deadline));
    return socket.send(frame.bytes, deadline);
  }

  Result<Frame> read(int from) override {
    Socket& socket = sockets_[static_cast<size_t>(from)];
    uint8_t bytes[kFrameHeaderBytes];
    TRY(socket.recv(bytes, kNoDeadline));
    auto [frame, n_bytes] = TRY(get_frame_header(bytes));
    // Grown as it comes: a length that lies costs nothing.
    constexpr size_t kPiece = size_t{16} << 20;
    while (frame.bytes.size() < n_bytes) {
      const size_t had = frame.bytes.size(), more = std::min(kPiece, n_bytes - had);
      frame.bytes.resize(had + more);
      TRY(socket.recv(std::span(frame.bytes).subspan(had), Clock::now() + pg_));
    }
    return std::move(frame);
  }

  void abort() override {
    for (const Socket& socket : sockets_) socket.shut();
  }

 private:
  Milliseconds pg_;
  std::vector<Socket> sockets_;  // by rank; ours is closed
};

std::string hello_of(std::string_view name, int rank) {
  return fmt::format("forebay {:<16.16} {:>8}", name, rank);
}

/// Connects to the ranks below, then takes the ranks above, in whatever order they come.
Result<std::vector<Socket>> connect_all(Control& control, std::string_view name) {
  const Deadline deadline = Clock::now() + control.timeouts().init;
  Socket listener = TRY(Socket::listen(0));
  const std::string address = fmt::format("{} {}", control.address(), listener.local_port());
  const std::vector<Bytes> addresses =
      TRY(control.gather(fmt::format("{}/addresses", name), Bytes(address.begin(), address.end())));
  std::vector<Socket> sockets(addresses.size());
  for (int peer = 0; peer < control.rank(); ++peer) {
    const Bytes& bytes = addresses[static_cast<size_t>(peer)];
    const std::string place(bytes.begin(), bytes.end());
    const size_t gap = place.find(' ');
    Socket socket =
        TRY(Socket::connect(place.substr(0, gap), std::atoi(place.substr(gap + 1).c_str()), deadline));
    const std::string hello = hello_of(name, control.rank());
    TRY(socket.send(Bytes(hello.begin(), hello.end()), deadline));
    sockets[static_cast<size_t>(peer)] = std::move(socket);
  }
  for (int n_missing = control.size() - 1 - control.rank(); n_missing > 0;) {
    Socket socket = TRY(listener.accept(deadline));
    Bytes bytes(hello_of(name, 0).size());
    if (!socket.recv(bytes, deadline)) continue;
    const std::string hello(bytes.begin(), bytes.end());
    for (int peer = control.rank() + 1; peer < control.size(); ++peer) {
      if (hello != hello_of(name, peer) || sockets[static_cast<size_t>(peer)].is_open()) continue;
      sockets[static_cast<size_t>(peer)] = std::move(socket);
      --n_missing;
      break;
    }
  }
  return sockets;
}

}  // namespace

Result<std::unique_ptr<Transport>> make_tcp_transport(Control& control, std::string_view name) {
  std::vector<Socket> sockets = TRY(connect_all(control, name));
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(control, std::move(sockets)));
}

}  // namespace forebay::train
