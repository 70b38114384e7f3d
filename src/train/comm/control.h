/// The control circuit: a connection of every process to rank 0, over which they meet, agree, and learn at
/// once that one of them is gone. No tensors go here.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "forebay/result.h"

#include "core/world.h"
#include "train/comm/control_message.h"
#include "train/comm/socket.h"
#include "train/comm/timeouts.h"

namespace forebay::train {

class ControlServer;

struct Failure {
  int rank = -1;        // whose; -1: nobody's in particular
  std::string message;  // "rank 2 is gone: its connection closed"
};

/// Thread-safe. Calls with the same name in different processes belong together; a name can be used again
/// once all have returned from it.
class Control {
 public:
  /// Waits until all are there. Errors: kIo naming host, port and the ranks that are missing;
  /// kInvalidArgument for ranks that contradict each other.
  static Result<std::unique_ptr<Control>> join(const World& world, const Timeouts& timeouts);
  ~Control();  // without leave(), to the others this process is gone

  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  const Timeouts& timeouts() const { return timeouts_; }
  /// This machine's address on the network that rank 0 is reached by.
  std::string address() const { return address_; }

  /// What each process gave, by rank, once all are at `name`. This wait, unlike one inside a collective,
  /// harms nobody: a slow peer is waited for up to timeouts.step. Errors: kIo, the failure that ended the
  /// wait.
  Result<std::vector<Bytes>> gather(std::string_view name, Bytes bytes);
  Result<void> barrier(std::string_view name);

  /// Tells everyone that this process cannot go on; the first failure of a run counts.
  void fail(const std::string& message);
  std::optional<Failure> failure() const;
  /// The failure that explains a lost connection may arrive a moment after the loss.
  std::optional<Failure> failure_within(Milliseconds patience);
  /// Called once, on another thread, when anyone fails, or at once when that has happened. Removed with the
  /// number that it returns.
  int on_failure(std::function<void(const Failure&)> callback);
  void remove_callback(int number);

  /// The end, as agreed: waits until all have called it. Errors: the failure instead.
  Result<void> leave();

 private:
  Control(const World& world, const Timeouts& timeouts);
  Result<void> connect();
  void listen_on();  // the thread
  void handle(ControlMessage message);
  void set_failure(Failure failure);
  Result<void> send(const ControlMessage& message);

  const World world_;
  const Timeouts timeouts_;
  std::string address_ = "127.0.0.1";
  std::unique_ptr<ControlServer> server_;  // in rank 0
  Socket socket_;
  std::mutex send_mutex_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<Bytes>, std::less<>> released_;
  std::optional<Failure> failure_;
  std::map<int, std::function<void(const Failure&)>> callbacks_;
  int next_callback_ = 0;
  std::mutex callback_mutex_;  // held while callbacks run, so that none runs after it was removed
  bool leaving_ = false;
  std::jthread listener_;
};

}  // namespace forebay::train
