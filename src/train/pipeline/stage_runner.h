/// A pipeline across processes: each holds one stage, rows and gradients go between them as a codec's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/comm/comm.h"
#include "train/nets/net.h"
#include "train/pipeline/runner.h"
#include "train/pipeline/wire_tap.h"
#include "train/wire/codec.h"

namespace forebay::train {

struct StagePipeline {
  /// One per boundary of the whole pipeline, or empty: all dense (f32 on the wire). Null: dense there. Only
  /// those beside this stage are used. Not owned.
  std::vector<Codec*> codecs = {};
  uint64_t seed = 0;   // of the codecs' noise, the same in every process
  WireTap tap = {};    // what this process sends through codecs
  WireTap meter = {};  // what comes to it through them, as counted there; no logical bits
};

/// Where the time of train() and forward() went, in seconds.
struct PipelineTimes {
  double total = 0;
  double compute = 0;   // the stage's own layers, and the loss
  double backward = 0;  // of compute, the backward passes
  double codec = 0;     // encode and decode
  double wait = 0;      // for rows and gradients of others: bubble, link, slower stages
};

/// Confined. Errors of Comm, and of any process: whatever ends train() or forward() in one ends it in all,
/// with the same message. Parameters are then those of the last step that was finished.
class StageRunner : public Runner {
 public:
  const PipelineTimes& times() const { return times_; }
  void reset_times() { times_ = {}; }

  /// Every parameter of the model by name, on the CPU, in rank 0; empty elsewhere. Collective.
  virtual Result<std::map<std::string, torch::Tensor>> gather_parameters() = 0;

 protected:
  PipelineTimes times_;
};

/// `net` holds this process's stage: rank r of `pipe` is stage r. Parameters have the names that they have in
/// the whole model; what several stages hold under one name (tied embeddings) is one parameter, whose
/// gradients train() adds up. Collective. Errors: stages that do not make one model.
Result<std::unique_ptr<StageRunner>> make_stage_runner(Net& net, Comm& pipe, StagePipeline pipeline);

}  // namespace forebay::train
