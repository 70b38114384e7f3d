/// Who holds what in a pipeline: what the processes tell each other before the first step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "train/comm/comm.h"
#include "train/nets/net.h"

namespace forebay::train {

struct SharedParameter {
  std::string name;
  std::vector<int> holders;  // at least two ranks, rising
};

struct StageLayout {
  std::vector<std::vector<std::string>> names;  // of parameters, by rank
  std::vector<SharedParameter> shared;          // by name
};

/// Collective. Errors: kInvalidArgument when the stages, in the order of ranks, are not one model.
Result<StageLayout> agree_on_layout(const Net& net, Comm& pipe);

}  // namespace forebay::train
