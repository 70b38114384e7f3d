/// c10d's key-value store, through which its groups find each other: rank 0 keeps one for each group.
#pragma once

#include <string_view>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "forebay/result.h"

#include "train/comm/control.h"

namespace forebay::train {

/// Collective; where rank 0 keeps it goes over the control circuit. Keys begin with `name`. Throws what c10d
/// throws.
Result<c10::intrusive_ptr<c10d::Store>> share_store(Control& control, std::string_view name);

}  // namespace forebay::train
