/// What a process sent or got over a circuit.
#pragma once

#include <cstdint>

namespace forebay::train {

/// In messages between two; collectives and frame headers are counted apart.
struct CommCount {
  int64_t messages = 0;
  int64_t bytes = 0;
  int64_t collective_bytes = 0;
  int64_t header_bytes = 0;
  bool operator==(const CommCount&) const = default;
};

}  // namespace forebay::train
