/// What goes over a boundary, seen from outside: bytes, and which way. No torch here.
#pragma once

#include <cstdint>
#include <vector>

namespace forebay::train {

/// Activations go forward, gradients come back.
enum class Leg { kForward, kBackward };

struct Payload {
  std::vector<uint8_t> bytes;  // exactly what is sent
  double logical_bits = 0;     // what a packed stream of fractional groups would take; bytes * 8 is not less
};

}  // namespace forebay::train
