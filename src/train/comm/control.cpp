#include "train/comm/control.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "train/comm/control_server.h"

namespace forebay::train {

using Kind = ControlMessage::Kind;

Control::Control(const World& world, const Timeouts& timeouts) : world_(world), timeouts_(timeouts) {}

Result<std::unique_ptr<Control>> Control::join(const World& world, const Timeouts& timeouts) {
  TRY(timeouts.check());
  std::unique_ptr<Control> control(new Control(world, timeouts));
  if (world.size > 1) TRY(control->connect());
  return control;
}

Result<void> Control::connect() {
  if (world_.rank == 0) server_ = TRY(ControlServer::start(world_, timeouts_));
  // Rank 0 answers first when someone is missing: it knows who.
  const Deadline deadline = Clock::now() + timeouts_.init;
  Result<Socket> socket = Socket::connect(world_.host, world_.port, deadline);
  if (!socket)
    return Error{Code::kIo, fmt::format("rank {}: no rendezvous within {}: rank 0 does not answer at {}",
                                        world_.rank, describe(timeouts_.init), socket.error().message)};
  socket_ = std::move(*socket);
  address_ = socket_.local_address();
  listener_ = std::jthread([this] { listen_on(); });
  TRY(send({.kind = Kind::kHello, .rank = world_.rank, .size = world_.size, .name = "forebay 1"}));

  std::unique_lock lock(mutex_);
  const auto met = [&] { return failure_ || released_.contains("rendezvous"); };
  if (!changed_.wait_until(lock, deadline + timeouts_.pg, met))
    return Error{Code::kIo, fmt::format("rank {}: no rendezvous at {}:{} within {}", world_.rank, world_.host,
                                        world_.port, describe(timeouts_.init))};
  if (failure_) return Error{Code::kIo, failure_->message};
  return {};
}

Control::~Control() {
  if (listener_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    socket_.shut();
    listener_.join();
  }
  server_.reset();
}

Result<void> Control::send(const ControlMessage& message) {
  const Bytes bytes = encode(message);
  const std::lock_guard lock(send_mutex_);
  return socket_.send(bytes, Clock::now() + timeouts_.pg);
}

void Control::listen_on() {
  MessageBuffer buffer;
  Bytes bytes(1 << 16);
  Clock::time_point heard = Clock::now(), beat = heard;
  const Milliseconds interval = std::max(timeouts_.silence / 5, Milliseconds(1));
  for (;;) {
    // By the clock, whatever is heard meanwhile: rank 0's own beats come as often.
    if (Clock::now() - beat >= interval) {
      beat = Clock::now();
      (void)send({.kind = Kind::kBeat, .rank = world_.rank});  // the next read says why it could not be
    }
    const auto patience = std::chrono::ceil<Milliseconds>(beat + interval - Clock::now()).count();
    pollfd entry = {.fd = socket_.fd(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(patience, 0, interval.count())));
    const Result<size_t> n = socket_.recv_some(bytes);
    if (!n) {
      const std::lock_guard lock(mutex_);
      if (leaving_) return;
    }
    if (!n) return set_failure({0, "rank 0 is gone: its connection closed"});
    if (*n > 0) heard = Clock::now();
    buffer.add(std::span(bytes).first(*n));
    for (;;) {
      Result<std::optional<ControlMessage>> message = buffer.next();
      if (!message) return set_failure({0, "from rank 0: " + message.error().message});
      if (!*message) break;
      handle(std::move(**message));
    }
    if (Clock::now() - heard > timeouts_.silence)
      return set_failure({0, fmt::format("rank 0 has been silent for {}", describe(timeouts_.silence))});
  }
}

void Control::handle(ControlMessage message) {
  if (message.kind == Kind::kFailed) return set_failure({message.rank, message.name});
  if (message.kind != Kind::kRelease) return;
  const std::lock_guard lock(mutex_);
  released_[message.name] = std::move(message.parts);
  changed_.notify_all();
}

void Control::set_failure(Failure failure) {
  const std::lock_guard one_at_a_time(callback_mutex_);
  std::map<int, std::function<void(const Failure&)>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    callbacks = callbacks_;
    changed_.notify_all();
  }
  for (const auto& [number, callback] : callbacks) callback(failure);
}

Result<std::vector<Bytes>> Control::gather(std::string_view name, Bytes bytes) {
  if (world_.size == 1) return std::vector<Bytes>{std::move(bytes)};
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return Error{Code::kIo, failure_->message};
  }
  const Deadline deadline = Clock::now() + timeouts_.step;
  ControlMessage arrival{.kind = Kind::kArrive, .rank = world_.rank, .name = std::string(name)};
  arrival.parts.push_back(std::move(bytes));
  if (const Result<void> sent = send(arrival); !sent) {
    const std::optional<Failure> why = failure_within(Milliseconds(1000));
    return Error{Code::kIo, why ? why->message : "rank 0: " + sent.error().message};
  }
  std::unique_lock lock(mutex_);
  const bool ended =
      changed_.wait_until(lock, deadline, [&] { return failure_ || released_.contains(name); });
  if (const auto found = released_.find(name); found != released_.end()) {
    std::vector<Bytes> parts = std::move(found->second);
    released_.erase(found);
    return parts;
  }
  if (ended) return Error{Code::kIo, failure_->message};
  lock.unlock();
  const std::string message =
      fmt::format("rank {} waited {} for the others at '{}'", world_.rank, describe(timeouts_.step), name);
  fail(message);
  return Error{Code::kIo, message};
}

Result<void> Control::barrier(std::string_view name) {
  TRY(gather(name, {}));
  return {};
}

void Control::fail(const std::string& message) {
  // Through rank 0, so that all agree on which failure was the first.
  if (world_.size > 1 && !failure() && send({.kind = Kind::kFailed, .rank = world_.rank, .name = message}) &&
      failure_within(Milliseconds(1000)))
    return;
  set_failure({world_.rank, message});
}

std::optional<Failure> Control::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<Failure> Control::failure_within(Milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return failure_.has_value(); });
  return failure_;
}

int Control::on_failure(std::function<void(const Failure&)> callback) {
  const std::lock_guard one_at_a_time(callback_mutex_);
  std::optional<Failure> failure;
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_callback_++;
    failure = failure_;
    callbacks_[number] = callback;
  }
  if (failure) callback(*failure);
  return number;
}

void Control::remove_callback(int number) {
  const std::lock_guard one_at_a_time(callback_mutex_);
  const std::lock_guard lock(mutex_);
  callbacks_.erase(number);
}

Result<void> Control::leave() {
  if (world_.size == 1) return {};
  TRY(barrier("leave"));
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  return send({.kind = Kind::kBye, .rank = world_.rank});
}

}  // namespace forebay::train
