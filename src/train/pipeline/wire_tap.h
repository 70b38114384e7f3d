/// What a boundary tells whoever counts what was sent.
#pragma once

#include <cstdint>
#include <functional>

#include "train/wire/codec.h"

namespace forebay::train {

/// One micro-batch over one boundary in one direction.
struct WireTransfer {
  int64_t step = 0;
  int64_t boundary = 0;
  Leg leg = Leg::kForward;
  int64_t n_rows = 0;
  double logical_bits = 0;
  int64_t bytes = 0;  // sent; where stages share a process, what would have been
};

/// Called on the runner's thread, where the transfer leaves its sender.
using WireTap = std::function<void(const WireTransfer&)>;

}  // namespace forebay::train
