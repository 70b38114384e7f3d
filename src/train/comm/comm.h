/// Messages and collectives between the processes of a run, over one circuit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "train/comm/comm_count.h"
#include "train/comm/control.h"
#include "train/comm/link_model.h"
#include "train/comm/transport.h"

namespace forebay::train {

/// Confined, but for abort(). Sending and receiving go on beside the caller's work. After an error all calls
/// give errors; the message names the process that failed first. Errors are kIo unless said.
class Comm {
 public:
  /// `transport` is empty in a world of one. `control` must outlive it.
  Comm(std::string name, Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link);
  ~Comm();  // without shutdown(): as abort(), but the others are not told
  Comm(const Comm&) = delete;

  int rank() const;
  int size() const;
  Control& control();
  std::string backend() const;

  /// Queues a message; errors of earlier ones may show here. `tag` is what the receiver expects to get.
  Result<void> send(int to, uint64_t tag, Bytes bytes);
  /// The next message of `from`, which may have come already. The meter counts every byte that came and
  /// zeroes those past `declared_bytes`. Waits up to timeouts.step. Errors: also kInternal for another tag.
  Result<Bytes> recv(int from, uint64_t tag, size_t declared_bytes);

  /// Collectives first wait, as long as timeouts.step, until all are there; nothing is queued meanwhile.
  Result<void> broadcast(std::span<uint8_t> bytes, int root);
  /// The sum, the same bits everywhere. Over frames: added in the order of ranks.
  Result<void> allreduce_f32(std::span<float> values);
  Result<std::vector<Bytes>> allgather(std::span<const uint8_t> bytes);
  Result<void> barrier_named(std::string_view name);

  /// The end, as agreed: what is queued is sent, all wait for all.
  Result<void> shutdown();
  /// The end, now: everything that waits, here and in the other processes, returns an error with `why`.
  /// Thread-safe.
  void abort(const std::string& why);

  CommCount bytes_sent() const;
  CommCount bytes_received() const;
  /// What the emulated link to this peer did.
  LinkCount link_count(int to) const;
  /// Collectives that have begun, that is with all processes at them, and not ended.
  int collectives_under_way() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forebay::train
