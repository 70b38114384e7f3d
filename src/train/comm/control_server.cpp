#include "train/comm/control_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

namespace forebay::train {

using Kind = ControlMessage::Kind;

namespace {
constexpr Milliseconds kLook{20};
constexpr Milliseconds kSendPatience{1000};  // small messages: who does not take one is stuck
}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::start(const World& world, const Timeouts& timeouts) {
  std::unique_ptr<ControlServer> server(new ControlServer(world, timeouts));
  Result<Socket> listener = Socket::listen(world.port);
  if (!listener)
    return Error{Code::kIo, fmt::format("rank 0 cannot be met at {}:{}: {}", world.host, world.port,
                                        listener.error().message)};
  server->listener_ = std::move(*listener);
  server->port_ = server->listener_.local_port();
  server->joined_.resize(static_cast<size_t>(world.size));
  server->started_ = server->last_beat_ = Clock::now();
  server->thread_ = std::jthread([self = server.get()](const std::stop_token& stop) { self->serve(stop); });
  return server;
}

ControlServer::~ControlServer() {
  // Everyone has left, or this process gives up; in between there is a moment for messages under way.
  const Deadline patience = Clock::now() + kSendPatience;
  if (!failed_) {
    while (thread_.joinable() && !done_.load() && Clock::now() < patience)
      std::this_thread::sleep_for(Milliseconds(1));
  }
  thread_.request_stop();
}

void ControlServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested() && !everyone_left()) {
    std::vector<pollfd> entries = {{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
    for (const std::unique_ptr<Client>& client : clients_)
      entries.push_back({.fd = client->socket.fd(), .events = POLLIN, .revents = 0});
    ::poll(entries.data(), entries.size(), static_cast<int>(kLook.count()));
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].revents != 0) read(*clients_[i - 1]);
    std::erase_if(clients_, [](const std::unique_ptr<Client>& client) { return !client->open; });
    if ((entries[0].revents & POLLIN) != 0) accept_client();
    look_at_clock();
  }
  done_ = true;
}

bool ControlServer::everyone_left() const {
  return n_left_ == world_.size;
}

void ControlServer::accept_client() {
  Result<Socket> socket = listener_.accept(Clock::now());
  if (!socket) return;
  auto client = std::make_unique<Client>();
  client->socket = std::move(*socket);
  client->heard = Clock::now();
  clients_.push_back(std::move(client));
}

void ControlServer::read(Client& client) {
  Bytes bytes(1 << 16);
  const Result<size_t> n = client.socket.recv_some(bytes);
  if (!n) return lost(client);
  client.heard = Clock::now();
  client.buffer.add(std::span(bytes).first(*n));
  while (client.open) {
    Result<std::optional<ControlMessage>> message = client.buffer.next();
    // A stranger at our port is no failure of the run.
    if (!message && client.rank < 0) client.open = false;
    if (!message && client.rank >= 0) {
      fail(client.rank, fmt::format("from rank {}: {}", client.rank, message.error().message));
      client.open = false;
    }
    if (!message || !*message) return;
    handle(client, std::move(**message));
  }
}

void ControlServer::handle(Client& client, ControlMessage message) {
  if (client.rank < 0) {
    if (message.kind == Kind::kHello) return greet(client, message);
    client.open = false;
    return;
  }
  message.rank = client.rank;
  switch (message.kind) {
    case Kind::kArrive:
      return arrive(message);
    case Kind::kFailed:
      return fail(message.rank, message.name);
    case Kind::kBye:
      client.left = true;
      ++n_left_;
      return;
    default:
      return;
  }
}

void ControlServer::greet(Client& client, const ControlMessage& hello) {
  const auto refuse = [&](const std::string& why) {
    fail(hello.rank, why);
    send(client, encode(failure_));
    client.open = false;
  };
  if (hello.size != world_.size)
    return refuse(
        fmt::format("rank {} is one of {} processes, rank 0 one of {}", hello.rank, hello.size, world_.size));
  if (hello.rank < 0 || hello.rank >= world_.size || hello.name != "forebay 1")
    return refuse(fmt::format("rank {} ('{}') is none of {}", hello.rank, hello.name, world_.size));
  if (joined_[static_cast<size_t>(hello.rank)])
    return refuse(fmt::format("rank {} came twice: two processes have its number", hello.rank));
  client.rank = hello.rank;
  client.buffer.allow(MessageBuffer::kMaxBytes);
  joined_[static_cast<size_t>(hello.rank)] = true;
  ++n_joined_;
  if (failed_) return send(client, encode(failure_));
  if (everyone_came()) broadcast({.kind = Kind::kRelease, .name = "rendezvous"});
}

void ControlServer::arrive(const ControlMessage& message) {
  std::map<int, Bytes>& parts = arrivals_[message.name];
  if (parts.contains(message.rank) || message.parts.size() != 1)
    return fail(message.rank, fmt::format("rank {} came to '{}' twice", message.rank, message.name));
  parts[message.rank] = message.parts[0];
  if (parts.size() < static_cast<size_t>(world_.size)) return;
  ControlMessage release{.kind = Kind::kRelease, .name = message.name};
  for (auto& [rank, part] : parts) release.parts.push_back(std::move(part));
  arrivals_.erase(message.name);
  broadcast(release);
}

void ControlServer::lost(Client& client) {
  client.open = false;
  if (client.rank >= 0 && !client.left)
    fail(client.rank, fmt::format("rank {} is gone: its connection closed", client.rank));
}

void ControlServer::look_at_clock() {
  const Clock::time_point now = Clock::now();
  if (!failed_ && !everyone_came() && now - started_ > timeouts_.init) {
    std::vector<int> missing;
    for (int rank = 0; rank < world_.size; ++rank)
      if (!joined_[static_cast<size_t>(rank)]) missing.push_back(rank);
    fail(-1, fmt::format("rendezvous at {}:{}: after {} rank{} {} of {} {} missing", world_.host, world_.port,
                         describe(timeouts_.init), missing.size() == 1 ? "" : "s", fmt::join(missing, ", "),
                         world_.size, missing.size() == 1 ? "is" : "are"));
  }
  for (const std::unique_ptr<Client>& client : clients_)
    if (client->rank >= 0 && !client->left && now - client->heard > timeouts_.silence)
      fail(client->rank,
           fmt::format("rank {} has been silent for {}", client->rank, describe(timeouts_.silence)));
  if (now - last_beat_ > timeouts_.silence / 5) {
    last_beat_ = now;
    broadcast({.kind = Kind::kBeat});
  }
}

void ControlServer::fail(int rank, const std::string& message) {
  if (failed_) return;
  failed_ = true;
  failure_ = {.kind = Kind::kFailed, .rank = rank, .name = message};
  broadcast(failure_);
}

void ControlServer::send(Client& client, const Bytes& bytes) {
  if (!client.open) return;
  // What cannot be sent shows as a lost connection at the next read.
  if (!client.socket.send(bytes, Clock::now() + kSendPatience)) client.socket.shut();
}

void ControlServer::broadcast(const ControlMessage& message) {
  const Bytes bytes = encode(message);
  for (const std::unique_ptr<Client>& client : clients_)
    if (client->rank >= 0 && !client->left) send(*client, bytes);
}

}  // namespace forebay::train
