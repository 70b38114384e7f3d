/// Rank 0's side of the control circuit.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "forebay/result.h"

#include "train/comm/control.h"

namespace forebay::train {

/// Its thread serves all connections until everyone has left or it is destroyed.
class ControlServer {
 public:
  /// Errors: kIo, naming the port.
  static Result<std::unique_ptr<ControlServer>> start(const World& world, const Timeouts& timeouts);
  ~ControlServer();

  int port() const { return port_; }

 private:
  struct Client {
    Socket socket;
    MessageBuffer buffer{MessageBuffer::kMaxHelloBytes};
    int rank = -1;  // before its hello
    Clock::time_point heard;
    bool left = false;
    bool open = true;
  };

  ControlServer(const World& world, const Timeouts& timeouts) : world_(world), timeouts_(timeouts) {}
  void serve(const std::stop_token& stop);
  void accept_client();
  void read(Client& client);
  void handle(Client& client, ControlMessage message);
  void greet(Client& client, const ControlMessage& hello);
  void arrive(const ControlMessage& message);
  void lost(Client& client);
  void look_at_clock();
  void fail(int rank, const std::string& message);
  void send(Client& client, const Bytes& bytes);
  void broadcast(const ControlMessage& message);
  bool everyone_left() const;
  bool everyone_came() const { return n_joined_ == world_.size; }

  const World world_;
  const Timeouts timeouts_;
  int port_ = 0;
  Socket listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<bool> joined_;
  int n_joined_ = 0;
  std::map<std::string, std::map<int, Bytes>> arrivals_;
  int n_left_ = 0;
  std::atomic<bool> done_ = false;
  std::atomic<bool> failed_ = false;
  ControlMessage failure_;
  Clock::time_point started_;
  Clock::time_point last_beat_;
  std::jthread thread_;
};

}  // namespace forebay::train
