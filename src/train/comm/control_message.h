/// What goes over the control connections: one kind of message for all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

namespace forebay::train {

using Bytes = std::vector<uint8_t>;

struct ControlMessage {
  enum class Kind : uint8_t {
    kHello = 1,  // rank joins; name: "forebay 1", size
    kArrive,     // rank is at `name`, with parts[0]
    kRelease,    // everyone is at `name`: their parts by rank
    kFailed,     // rank failed (or -1: nobody in particular); name: how
    kBeat,       // alive
    kBye,        // about to close, as agreed
  };
  Kind kind = Kind::kBeat;
  int32_t rank = 0;
  int32_t size = 0;
  std::string name = {};
  std::vector<Bytes> parts = {};
  bool operator==(const ControlMessage&) const = default;
};

/// With its length in front.
Bytes encode(const ControlMessage& message);
/// Without the length. Errors: kCorrupt.
Result<ControlMessage> decode(std::span<const uint8_t> body);

/// Messages out of a stream. Confined.
class MessageBuffer {
 public:
  /// Whoever is not one of us may send anything: until hello, little is believed.
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  static constexpr size_t kMaxHelloBytes = 1024;
  explicit MessageBuffer(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  void allow(size_t max_bytes) { max_bytes_ = max_bytes; }
  void add(std::span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  /// The next whole one, empty when there is none yet. Errors: kCorrupt; what follows makes no sense then.
  Result<std::optional<ControlMessage>> next();

 private:
  size_t max_bytes_;
  Bytes bytes_;
};

}  // namespace forebay::train
