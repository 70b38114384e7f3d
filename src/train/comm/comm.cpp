#include "train/comm/comm.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay::train {
namespace {

/// How long the failure that explains a lost connection may take to arrive.
constexpr Milliseconds kExplanation{1500};

double seconds(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Clock::time_point at_seconds(double time) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time)));
}

/// One direction each way to another process, each with a thread from its first use on.
struct Peer {
  Peer(const LinkOptions& link, int from, int to) : model(link, from, to) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Frame> to_send;
  bool is_sending = false;  // a frame is out of the queue and not yet written
  std::deque<Frame> arrived[2];
  std::optional<Error> send_error, recv_error;
  bool ended = false;
  LinkModel model;
  std::jthread sender, receiver;
};

}  // namespace

struct Comm::State {
  State(std::string name, Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link)
      : name(std::move(name)), control(control), transport(std::move(transport)), link(link) {
    for (int peer = 0; peer < control.size(); ++peer)
      peers.push_back(std::make_unique<Peer>(link, control.rank(), peer));
    callback = control.on_failure([this](const Failure&) { end(); });
  }
  ~State() {
    control.remove_callback(callback);
    end();
    for (const std::unique_ptr<Peer>& peer : peers) {
      if (peer->sender.joinable()) peer->sender.join();
      if (peer->receiver.joinable()) peer->receiver.join();
    }
  }

  /// Wakes everything. Thread-safe.
  void end() {
    for (const std::unique_ptr<Peer>& peer : peers) {
      const std::lock_guard lock(peer->mutex);
      peer->ended = true;
      peer->changed.notify_all();
    }
    if (transport) transport->abort();
  }

  void send_on(int to) {
    Peer& peer = *peers[static_cast<size_t>(to)];
    std::unique_lock lock(peer.mutex);
    for (;;) {
      peer.changed.wait(lock, [&] { return peer.ended || !peer.to_send.empty(); });
      if (peer.ended) return;
      const Frame frame = std::move(peer.to_send.front());
      peer.to_send.pop_front();
      peer.is_sending = true;
      if (link.is_emulated()) {
        const double arrival =
            peer.model.arrival(seconds(Clock::now()), static_cast<int64_t>(frame.bytes.size()));
        peer.changed.wait_until(lock, at_seconds(arrival), [&] { return peer.ended; });
        if (peer.ended) return;
      }
      lock.unlock();
      const Result<void> written = transport->write(to, frame, Clock::now() + control.timeouts().step);
      lock.lock();
      peer.is_sending = false;
      if (!written) peer.send_error = written.error();
      peer.changed.notify_all();
      if (!written) return;
    }
  }

  void recv_on(int from) {
    Peer& peer = *peers[static_cast<size_t>(from)];
    for (;;) {
      Result<Frame> frame = transport->read(from);
      const std::lock_guard lock(peer.mutex);
      if (!frame)
        peer.recv_error = frame.error();
      else
        peer.arrived[static_cast<size_t>(frame->lane)].push_back(std::move(*frame));
      peer.changed.notify_all();
      if (peer.recv_error || peer.ended) return;
    }
  }

  /// What the caller is told: the failure of the run when there is one, else this one, which then is it.
  Error explained(int peer, const Error& error) {
    if (const std::optional<Failure> failure = control.failure_within(kExplanation))
      return {error.code, failure->message};
    Error own{error.code, fmt::format("rank {} lost rank {}: {}", control.rank(), peer, error.message)};
    control.fail(own.message);
    end();
    return own;
  }

  Result<void> check_peer(int peer) const {
    if (!transport || peer < 0 || peer >= control.size() || peer == control.rank())
      return Error{Code::kInvalidArgument,
                   fmt::format("rank {} of {} has no peer {}", control.rank(), control.size(), peer)};
    return {};
  }

  Result<void> queue(int to, Frame frame) {
    TRY(check_peer(to));
    if (frame.bytes.size() > UINT32_MAX)
      return Error{Code::kUnsupported, fmt::format("a message of {} bytes to rank {}, at most {}",
                                                   frame.bytes.size(), to, UINT32_MAX)};
    Peer& peer = *peers[static_cast<size_t>(to)];
    std::unique_lock lock(peer.mutex);
    if (peer.send_error || peer.ended) {
      const Error error = peer.send_error.value_or(Error{Code::kIo, "the circuit is closed"});
      lock.unlock();
      return explained(to, error);
    }
    const auto n_bytes = static_cast<int64_t>(frame.bytes.size());
    if (frame.lane == Lane::kPeer) {
      ++sent.messages;
      sent.bytes += n_bytes;
    } else {
      sent.collective_bytes += n_bytes;
    }
    sent.header_bytes += kFrameHeaderBytes;
    peer.to_send.push_back(std::move(frame));
    if (!peer.sender.joinable()) peer.sender = std::jthread([this, to] { send_on(to); });
    peer.changed.notify_all();
    return {};
  }

  Result<Frame> next(int from, Lane lane, uint64_t tag) {
    TRY(check_peer(from));
    Peer& peer = *peers[static_cast<size_t>(from)];
    std::deque<Frame>& arrived = peer.arrived[static_cast<size_t>(lane)];
    std::unique_lock lock(peer.mutex);
    if (!peer.receiver.joinable()) peer.receiver = std::jthread([this, from] { recv_on(from); });
    const Deadline deadline = Clock::now() + control.timeouts().step;
    const bool in_time = peer.changed.wait_until(
        lock, deadline, [&] { return peer.ended || peer.recv_error || !arrived.empty(); });
    if (arrived.empty()) {
      Error error{Code::kIo, "the circuit is closed"};
      if (peer.recv_error) error = *peer.recv_error;
      if (!in_time) error.message = fmt::format("nothing came within {}", describe(control.timeouts().step));
      lock.unlock();
      return explained(from, error);
    }
    Frame frame = std::move(arrived.front());
    arrived.pop_front();
    lock.unlock();
    if (frame.tag != tag)
      return explained(from, {Code::kInternal, fmt::format("a message tagged {:#x} came where {:#x} was due",
                                                           frame.tag, tag)});
    const auto n_bytes = static_cast<int64_t>(frame.bytes.size());
    if (lane == Lane::kPeer) {
      ++received.messages;
      received.bytes += n_bytes;
    } else {
      received.collective_bytes += n_bytes;
    }
    received.header_bytes += kFrameHeaderBytes;
    return frame;
  }

  /// A collective: all are there before anything is queued.
  template <typename Work>
  Result<void> together(std::string_view what, Work&& work) {
    TRY(control.barrier(fmt::format("{}/{} {}", name, what, ++n_collectives)));
    ++n_under_way;
    Result<void> done = work();
    --n_under_way;
    return done;
  }

  bool uses_own_collectives() const {
    return transport && transport->has_collectives() && !link.is_emulated();
  }

  const std::string name;
  Control& control;
  std::unique_ptr<Transport> transport;
  const LinkOptions link;
  std::vector<std::unique_ptr<Peer>> peers;
  CommCount sent, received;
  uint64_t n_collectives = 0;
  std::atomic<int> n_under_way = 0;
  int callback = -1;
};

Comm::Comm(std::string name, Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link)
    : state_(std::make_unique<State>(std::move(name), control, std::move(transport), link)) {
  ENSURE(control.size() == 1 || state_->transport, "several processes need a transport");
}

Comm::~Comm() = default;

int Comm::rank() const {
  return state_->control.rank();
}
int Comm::size() const {
  return state_->control.size();
}
Control& Comm::control() {
  return state_->control;
}
std::string Comm::backend() const {
  return state_->transport ? state_->transport->name() : "none";
}

Result<void> Comm::send(int to, uint64_t tag, Bytes bytes) {
  return state_->queue(to, {.lane = Lane::kPeer, .tag = tag, .bytes = std::move(bytes)});
}

Result<Bytes> Comm::recv(int from, uint64_t tag, size_t declared_bytes) {
  Frame frame = TRY(state_->next(from, Lane::kPeer, tag));
  if (frame.bytes.size() > declared_bytes)
    std::fill(frame.bytes.begin() + static_cast<ptrdiff_t>(declared_bytes), frame.bytes.end(), uint8_t{0});
  return std::move(frame.bytes);
}

Result<void> Comm::broadcast(std::span<uint8_t> bytes, int root) {
  if (size() == 1) return {};
  return state_->together("broadcast", [&]() -> Result<void> {
    if (state_->uses_own_collectives()) {
      (rank() == root ? state_->sent : state_->received).collective_bytes +=
          static_cast<int64_t>(bytes.size());
      const Result<void> done = state_->transport->broadcast(bytes, root);
      if (!done) return state_->explained(root, done.error());
      return {};
    }
    const uint64_t tag = state_->n_collectives;
    if (rank() == root) {
      for (int peer = 0; peer < size(); ++peer)
        if (peer != root)
          TRY(state_->queue(peer, {Lane::kCollective, tag, Bytes(bytes.begin(), bytes.end())}));
      return {};
    }
    const Frame frame = TRY(state_->next(root, Lane::kCollective, tag));
    if (frame.bytes.size() != bytes.size())
      return Error{Code::kInternal,
                   fmt::format("broadcast of {} bytes where {} were due", frame.bytes.size(), bytes.size())};
    std::copy(frame.bytes.begin(), frame.bytes.end(), bytes.begin());
    return {};
  });
}

Result<void> Comm::allreduce_f32(std::span<float> values) {
  if (size() == 1) return {};
  return state_->together("allreduce", [&]() -> Result<void> {
    const size_t n_bytes = values.size_bytes();
    if (state_->uses_own_collectives()) {
      state_->sent.collective_bytes += static_cast<int64_t>(n_bytes);
      state_->received.collective_bytes += static_cast<int64_t>(n_bytes);
      const Result<void> done = state_->transport->allreduce(values);
      if (!done) return state_->explained(0, done.error());
      return {};
    }
    const uint64_t tag = state_->n_collectives;
    const auto bytes_of = [&] {
      Bytes bytes(n_bytes);
      std::memcpy(bytes.data(), values.data(), n_bytes);
      return bytes;
    };
    const auto take = [&](int peer, std::vector<float>& other) -> Result<void> {
      const Frame frame = TRY(state_->next(peer, Lane::kCollective, tag));
      if (frame.bytes.size() != n_bytes)
        return Error{Code::kInternal, fmt::format("allreduce: {} bytes from rank {}, {} here",
                                                  frame.bytes.size(), peer, n_bytes)};
      std::memcpy(other.data(), frame.bytes.data(), n_bytes);
      return {};
    };
    std::vector<float> other(values.size());
    if (rank() > 0) {
      TRY(state_->queue(0, {Lane::kCollective, tag, bytes_of()}));
      TRY(take(0, other));
      std::copy(other.begin(), other.end(), values.begin());
      return {};
    }
    for (int peer = 1; peer < size(); ++peer) {
      TRY(take(peer, other));
      for (size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    }
    for (int peer = 1; peer < size(); ++peer) TRY(state_->queue(peer, {Lane::kCollective, tag, bytes_of()}));
    return {};
  });
}

Result<std::vector<Bytes>> Comm::allgather(std::span<const uint8_t> bytes) {
  std::vector<Bytes> all(static_cast<size_t>(size()));
  all[static_cast<size_t>(rank())].assign(bytes.begin(), bytes.end());
  if (size() == 1) return all;
  TRY(state_->together("allgather", [&]() -> Result<void> {
    const uint64_t tag = state_->n_collectives;
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank())
        TRY(state_->queue(peer, {Lane::kCollective, tag, Bytes(bytes.begin(), bytes.end())}));
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      Frame frame = TRY(state_->next(peer, Lane::kCollective, tag));
      all[static_cast<size_t>(peer)] = std::move(frame.bytes);
    }
    return {};
  }));
  return all;
}

Result<void> Comm::barrier_named(std::string_view name) {
  return state_->control.barrier(fmt::format("{}/{}", state_->name, name));
}

Result<void> Comm::shutdown() {
  if (size() == 1) return {};
  const Deadline deadline = Clock::now() + state_->control.timeouts().step;
  for (size_t i = 0; i < state_->peers.size(); ++i) {
    Peer& peer = *state_->peers[i];
    std::unique_lock lock(peer.mutex);
    const auto sent = [&] {
      return (peer.to_send.empty() && !peer.is_sending) || peer.ended || peer.send_error;
    };
    const bool in_time = peer.changed.wait_until(lock, deadline, sent);
    if (in_time && !peer.ended && !peer.send_error) continue;
    Error error{Code::kIo, "the circuit is closed"};
    if (peer.send_error) error = *peer.send_error;
    if (!in_time) error.message = "messages could not be sent";
    lock.unlock();
    return state_->explained(static_cast<int>(i), error);
  }
  TRY(barrier_named("shutdown"));
  state_->end();
  return {};
}

void Comm::abort(const std::string& why) {
  state_->control.fail(why);
  state_->end();
}

CommCount Comm::bytes_sent() const {
  return state_->sent;
}
CommCount Comm::bytes_received() const {
  return state_->received;
}
LinkCount Comm::link_count(int to) const {
  Peer& peer = *state_->peers[static_cast<size_t>(to)];
  const std::lock_guard lock(peer.mutex);
  return peer.model.count();
}
int Comm::collectives_under_way() const {
  return state_->n_under_way;
}

}  // namespace forebay::train
