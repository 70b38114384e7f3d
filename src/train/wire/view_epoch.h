/// Which view a batch of log-probs was computed under. Log-probs of two epochs have no ratio: the loss
/// refuses them instead of training on the difference.
#pragma once

#include <cstdint>
#include <span>

#include "forebay/result.h"

#include "train/wire/codec.h"

namespace forebay::train {

struct ViewEpoch {
  uint64_t id = 0;
  bool operator==(const ViewEpoch&) const = default;
};

/// Of a pass with these codecs in use at this step (which keys masks and noise). The order of codecs matters;
/// none, for a dense pass, is an epoch too.
ViewEpoch view_epoch(uint64_t seed, int64_t step, std::span<const Codec* const> codecs);

/// Errors: kInternal, naming both, when `used` is not what the log-probs were made under.
Result<void> check_view(ViewEpoch made, ViewEpoch used);

}  // namespace forebay::train
