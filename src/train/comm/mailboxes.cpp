#include "train/comm/mailboxes.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

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

}  // namespace

/// One direction each way to another process, each with a thread from its first use on.
struct Mailboxes::Peer {
  Peer(const LinkOptions& link, int from, int to) : model(link, from, to) {}

  std::mutex mutex;
  std::condition_variable changed;
  struct Leaving {
    Frame frame;
    Clock::time_point arrives;  // over the emulated link; in the past without one
  };
  std::deque<Leaving> to_send;
  bool is_sending = false;  // a frame is out of the queue and not yet written
  std::deque<Frame> arrived[2];
  std::optional<Error> send_error, recv_error;
  bool ended = false;
  LinkModel model;
  std::jthread sender, receiver;
};

Mailboxes::Mailboxes(Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link)
    : control_(control), transport_(std::move(transport)), link_(link) {
  for (int peer = 0; peer < control.size(); ++peer)
    peers_.push_back(std::make_unique<Peer>(link, control.rank(), peer));
  callback_ = control.on_failure([this](const Failure&) { end(); });
}

Mailboxes::~Mailboxes() {
  control_.remove_callback(callback_);
  end();
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer->sender.joinable()) peer->sender.join();
    if (peer->receiver.joinable()) peer->receiver.join();
  }
}

void Mailboxes::end() {
  for (const std::unique_ptr<Peer>& peer : peers_) {
    const std::lock_guard lock(peer->mutex);
    peer->ended = true;
    peer->changed.notify_all();
  }
  if (transport_) transport_->abort();
}

void Mailboxes::send_on(int to) {
  Peer& peer = at(to);
  std::unique_lock lock(peer.mutex);
  for (;;) {
    peer.changed.wait(lock, [&] { return peer.ended || !peer.to_send.empty(); });
    if (peer.ended) return;
    const Peer::Leaving next = std::move(peer.to_send.front());
    peer.to_send.pop_front();
    peer.is_sending = true;
    peer.changed.wait_until(lock, next.arrives, [&] { return peer.ended; });
    if (peer.ended) return;
    lock.unlock();
    const Result<void> written = transport_->write(to, next.frame, Clock::now() + control_.timeouts().step);
    lock.lock();
    peer.is_sending = false;
    if (!written) peer.send_error = written.error();
    peer.changed.notify_all();
    if (!written) return;
  }
}

void Mailboxes::recv_on(int from) {
  Peer& peer = at(from);
  for (;;) {
    Result<Frame> frame = transport_->read(from);
    const std::lock_guard lock(peer.mutex);
    if (!frame)
      peer.recv_error = frame.error();
    else
      peer.arrived[static_cast<size_t>(frame->lane)].push_back(std::move(*frame));
    peer.changed.notify_all();
    if (peer.recv_error || peer.ended) return;
  }
}

Error Mailboxes::explained(int peer, const Error& error) {
  if (const std::optional<Failure> failure = control_.failure_within(kExplanation))
    return {error.code, failure->message};
  Error own{error.code, fmt::format("rank {} lost rank {}: {}", control_.rank(), peer, error.message)};
  control_.fail(own.message);
  end();
  return own;
}

Result<void> Mailboxes::check_peer(int peer) const {
  if (!transport_ || peer < 0 || peer >= control_.size() || peer == control_.rank())
    return Error{Code::kInvalidArgument,
                 fmt::format("rank {} of {} has no peer {}", control_.rank(), control_.size(), peer)};
  return {};
}

Result<void> Mailboxes::queue(int to, Frame frame) {
  TRY(check_peer(to));
  if (frame.bytes.size() > UINT32_MAX)
    return Error{Code::kUnsupported, fmt::format("a message of {} bytes to rank {}, at most {}",
                                                 frame.bytes.size(), to, UINT32_MAX)};
  Peer& peer = at(to);
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
  // From when it is handed over: what waits behind another message's latency is on the wire meanwhile.
  Clock::time_point arrives = {};
  if (link_.is_emulated()) arrives = at_seconds(peer.model.arrival(seconds(Clock::now()), n_bytes));
  peer.to_send.push_back({std::move(frame), arrives});
  if (!peer.sender.joinable()) peer.sender = std::jthread([this, to] { send_on(to); });
  peer.changed.notify_all();
  return {};
}

Result<Frame> Mailboxes::next(int from, Lane lane, uint64_t tag) {
  TRY(check_peer(from));
  Peer& peer = at(from);
  std::deque<Frame>& arrived = peer.arrived[static_cast<size_t>(lane)];
  std::unique_lock lock(peer.mutex);
  if (!peer.receiver.joinable()) peer.receiver = std::jthread([this, from] { recv_on(from); });
  const Deadline deadline = Clock::now() + control_.timeouts().step;
  const bool in_time = peer.changed.wait_until(
      lock, deadline, [&] { return peer.ended || peer.recv_error || !arrived.empty(); });
  if (arrived.empty()) {
    Error error{Code::kIo, "the circuit is closed"};
    if (peer.recv_error) error = *peer.recv_error;
    if (!in_time) error.message = fmt::format("nothing came within {}", describe(control_.timeouts().step));
    lock.unlock();
    return explained(from, error);
  }
  Frame frame = std::move(arrived.front());
  arrived.pop_front();
  lock.unlock();
  if (frame.tag != tag)
    return explained(from, {Code::kInternal,
                            fmt::format("a message tagged {:#x} came where {:#x} was due", frame.tag, tag)});
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

Result<void> Mailboxes::flush() {
  const Deadline deadline = Clock::now() + control_.timeouts().step;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = *peers_[i];
    std::unique_lock lock(peer.mutex);
    const auto is_sent = [&] {
      return (peer.to_send.empty() && !peer.is_sending) || peer.ended || peer.send_error;
    };
    const bool in_time = peer.changed.wait_until(lock, deadline, is_sent);
    if (in_time && !peer.ended && !peer.send_error) continue;
    Error error{Code::kIo, "the circuit is closed"};
    if (peer.send_error) error = *peer.send_error;
    if (!in_time) error.message = "messages could not be sent";
    lock.unlock();
    return explained(static_cast<int>(i), error);
  }
  return {};
}

LinkCount Mailboxes::link_count(int to) const {
  Peer& peer = at(to);
  const std::lock_guard lock(peer.mutex);
  return peer.model.count();
}

}  // namespace forebay::train
