/// A pipeline in one process: virtual stages with a codec's view at every boundary. The plain reference of
/// the one across processes, and what a single machine trains with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "forebay/result.h"

#include "train/nets/net.h"
#include "train/pipeline/runner.h"
#include "train/pipeline/wire_tap.h"
#include "train/wire/codec.h"

namespace forebay::train {

struct LocalPipeline {
  int64_t n_stages = 1;
  /// One per boundary (n_stages - 1), or empty: all dense. Null: dense at this boundary. Not owned; they must
  /// outlive the runner.
  std::vector<Codec*> codecs = {};
  uint64_t seed = 0;  // of the codecs' noise
  WireTap tap = {};
};

/// `net` holds the whole model and must outlive the runner. Errors: a number of stages that the model has not
/// blocks for, a number of codecs other than that of boundaries.
Result<std::unique_ptr<Runner>> make_local_runner(Net& net, LocalPipeline pipeline);

}  // namespace forebay::train
