/// What a backend has to be able to do: move frames between two processes, one thread per peer and direction.
/// Queues, link emulation, meters and errors that name the right process are Comm's, for every backend.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "train/comm/control.h"

namespace forebay::train {

enum class Lane : uint8_t { kPeer = 0, kCollective = 1 };

struct Frame {
  Lane lane = Lane::kPeer;
  uint64_t tag = 0;  // what both sides think this is
  Bytes bytes;
};

/// Where a frame begins: bytes (4), lane (1), tag (8), little-endian. Beside the payload on every wire.
inline constexpr size_t kFrameHeaderBytes = 13;
void put_frame_header(const Frame& frame, std::span<uint8_t, kFrameHeaderBytes> out);
/// The frame without its bytes, and how many there are. Errors: kCorrupt.
Result<std::pair<Frame, size_t>> get_frame_header(std::span<const uint8_t, kFrameHeaderBytes> bytes);

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string name() const = 0;  // "tcp"

  /// Blocks until it is under way. `deadline` bounds the sending itself.
  virtual Result<void> write(int to, const Frame& frame, Deadline deadline) = 0;
  /// Blocks until one comes, for as long as it takes; abort() ends that.
  virtual Result<Frame> read(int from) = 0;
  /// Everything that blocks returns an error, now and from now on. Thread-safe.
  virtual void abort() = 0;

  /// The backend's own collectives, where it has some that beat frames; called with everyone at the same one.
  virtual bool has_collectives() const { return false; }
  virtual Result<void> allreduce(std::span<float>) { return Error{Code::kUnsupported, name()}; }
  virtual Result<void> broadcast(std::span<uint8_t>, int /*root*/) {
    return Error{Code::kUnsupported, name()};
  }
};

/// Plain TCP, a connection per pair. Collective: everyone makes the same ones in the same order, named alike.
Result<std::unique_ptr<Transport>> make_tcp_transport(Control& control, std::string_view name);

/// c10d's Gloo and NCCL. Errors: kUnsupported in a build without them.
Result<std::unique_ptr<Transport>> make_gloo_transport(Control& control, std::string_view name);
Result<std::unique_ptr<Transport>> make_nccl_transport(Control& control, std::string_view name, int device);

/// With torchrun: what rank 0 puts at `key` in the agent's store, once it is there. `mine` is rank 0's.
Result<std::string> exchange_in_agent_store(const World& world, const std::string& key,
                                            const std::string& mine, Milliseconds patience);

}  // namespace forebay::train
