/// How long the processes of a run wait for each other.
#pragma once

#include <chrono>
#include <string>

#include "forebay/result.h"

namespace forebay::train {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
using Milliseconds = std::chrono::milliseconds;

/// They nest: what a message may take once both sides are at it, what a peer may take to get there, and what
/// all may take to meet. A process that dies is noticed at once, one that stands still after `silence`,
/// whatever these are.
struct Timeouts {
  Milliseconds pg{30'000};     // one message or collective under way
  Milliseconds step{600'000};  // waiting for a slower peer
  Milliseconds init{900'000};  // rendezvous
  Milliseconds silence{20'000};

  /// Errors: kInvalidArgument unless 0 < pg < step < init and 0 < silence < step.
  Result<void> check() const;
};

/// "1.5 s", "200 ms".
std::string describe(Milliseconds time);

}  // namespace forebay::train
