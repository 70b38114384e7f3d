#include "train/comm/comm.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/ensure.h"
#include "train/comm/mailboxes.h"

namespace forebay::train {

struct Comm::State {
  State(std::string name, Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link)
      : name(std::move(name)), control(control), boxes(control, std::move(transport), link) {}

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
    return boxes.transport() != nullptr && boxes.transport()->has_collectives() &&
           !boxes.link().is_emulated();
  }

  const std::string name;
  Control& control;
  Mailboxes boxes;
  uint64_t n_collectives = 0;
  std::atomic<int> n_under_way = 0;
};

Comm::Comm(std::string name, Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link)
    : state_(std::make_unique<State>(std::move(name), control, std::move(transport), link)) {
  ENSURE(control.size() == 1 || state_->boxes.transport() != nullptr, "several processes need a transport");
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
  const Transport* const transport = state_->boxes.transport();
  return transport != nullptr ? transport->name() : "none";
}

Result<void> Comm::send(int to, uint64_t tag, Bytes bytes) {
  return state_->boxes.queue(to, {.lane = Lane::kPeer, .tag = tag, .bytes = std::move(bytes)});
}

Result<Bytes> Comm::recv(int from, uint64_t tag, size_t declared_bytes) {
  Frame frame = TRY(state_->boxes.next(from, Lane::kPeer, tag));
  if (frame.bytes.size() > declared_bytes)
    std::fill(frame.bytes.begin() + static_cast<ptrdiff_t>(declared_bytes), frame.bytes.end(), uint8_t{0});
  return std::move(frame.bytes);
}

Result<void> Comm::broadcast(std::span<uint8_t> bytes, int root) {
  if (size() == 1) return {};
  return state_->together("broadcast", [&]() -> Result<void> {
    if (state_->uses_own_collectives()) {
      (rank() == root ? state_->boxes.sent : state_->boxes.received).collective_bytes +=
          static_cast<int64_t>(bytes.size());
      const Result<void> done = state_->boxes.transport()->broadcast(bytes, root);
      if (!done) return state_->boxes.explained(root, done.error());
      return {};
    }
    const uint64_t tag = state_->n_collectives;
    if (rank() == root) {
      for (int peer = 0; peer < size(); ++peer)
        if (peer != root)
          TRY(state_->boxes.queue(peer, {Lane::kCollective, tag, Bytes(bytes.begin(), bytes.end())}));
      return {};
    }
    const Frame frame = TRY(state_->boxes.next(root, Lane::kCollective, tag));
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
      state_->boxes.sent.collective_bytes += static_cast<int64_t>(n_bytes);
      state_->boxes.received.collective_bytes += static_cast<int64_t>(n_bytes);
      const Result<void> done = state_->boxes.transport()->allreduce(values);
      if (!done) return state_->boxes.explained(0, done.error());
      return {};
    }
    const uint64_t tag = state_->n_collectives;
    const auto bytes_of = [&] {
      Bytes bytes(n_bytes);
      std::memcpy(bytes.data(), values.data(), n_bytes);
      return bytes;
    };
    const auto take = [&](int peer, std::vector<float>& other) -> Result<void> {
      const Frame frame = TRY(state_->boxes.next(peer, Lane::kCollective, tag));
      if (frame.bytes.size() != n_bytes)
        return Error{Code::kInternal, fmt::format("allreduce: {} bytes from rank {}, {} here",
                                                  frame.bytes.size(), peer, n_bytes)};
      std::memcpy(other.data(), frame.bytes.data(), n_bytes);
      return {};
    };
    std::vector<float> other(values.size());
    if (rank() > 0) {
      TRY(state_->boxes.queue(0, {Lane::kCollective, tag, bytes_of()}));
      TRY(take(0, other));
      std::copy(other.begin(), other.end(), values.begin());
      return {};
    }
    for (int peer = 1; peer < size(); ++peer) {
      TRY(take(peer, other));
      for (size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    }
    for (int peer = 1; peer < size(); ++peer)
      TRY(state_->boxes.queue(peer, {Lane::kCollective, tag, bytes_of()}));
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
        TRY(state_->boxes.queue(peer, {Lane::kCollective, tag, Bytes(bytes.begin(), bytes.end())}));
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      Frame frame = TRY(state_->boxes.next(peer, Lane::kCollective, tag));
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
  TRY(state_->boxes.flush());
  TRY(barrier_named("shutdown"));
  state_->boxes.end();
  return {};
}

void Comm::abort(const std::string& why) {
  state_->control.fail(why);
  state_->boxes.end();
}

CommCount Comm::bytes_sent() const {
  return state_->boxes.sent;
}
CommCount Comm::bytes_received() const {
  return state_->boxes.received;
}
LinkCount Comm::link_count(int to) const {
  return state_->boxes.link_count(to);
}
int Comm::collectives_under_way() const {
  return state_->n_under_way;
}

}  // namespace forebay::train
