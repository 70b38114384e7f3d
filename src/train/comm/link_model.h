/// A link slower and worse than the one there is: when would a message have arrived?
#pragma once

#include <cstdint>

#include "forebay/result.h"

#include "train/comm/timeouts.h"

namespace forebay::train {

/// All zero: no emulation. Every field changes speed only.
struct LinkOptions {
  double bytes_per_second = 0;  // 0: without limit
  double latency_s = 0;
  double jitter_s = 0;          // added to the latency of each packet, uniform in [0, jitter]
  double loss = 0;              // share of packets that must be sent again, below 1
  double resend_s = 0.2;        // until a lost packet is sent again
  int64_t packet_bytes = 1400;  // of a message, in one packet
  uint64_t seed = 0;

  bool is_emulated() const { return bytes_per_second > 0 || latency_s > 0 || jitter_s > 0 || loss > 0; }
  /// Errors: kInvalidArgument, naming the value.
  Result<void> check() const;
};

struct LinkCount {
  int64_t messages = 0;
  int64_t packets = 0;  // first sendings
  int64_t resent = 0;
  double busy_s = 0;  // bytes / rate, of all packets
};

/// One direction of one link. Messages arrive in order. A function of options, `from`, `to`, and the order
/// and sizes of the messages. Confined.
class LinkModel {
 public:
  LinkModel(const LinkOptions& options, int from, int to);

  /// When a message handed over at `now` (seconds, not falling) has arrived whole: it waits for the ones
  /// before it, takes bytes / rate, then latency and jitter; a lost packet is sent again resend_s after it
  /// was, and takes its time on the link again.
  double arrival(double now, int64_t bytes);

  const LinkCount& count() const { return count_; }

 private:
  double draw();  // uniform in [0, 1)

  LinkOptions options_;
  uint64_t state_;
  double free_at_ = 0;
  double last_arrival_ = 0;
  LinkCount count_;
};

}  // namespace forebay::train
