/// Pretraining and fine-tuning: the same loop, over documents of which all or some tokens are to be learnt.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "core/progress.h"
#include "train/fit/adamw.h"
#include "train/fit/documents.h"
#include "train/fit/packer.h"
#include "train/fit/schedule.h"
#include "train/nets/net.h"

namespace forebay::train {

struct FitOptions {
  // Changes results.
  int64_t batch = 8;         // rows per step
  int64_t row_tokens = 256;  // tokens per row
  Packing packing = Packing::kStream;
  uint64_t seed = 1;
  Schedule schedule;
  AdamWOptions adam;
  double clip = 1;             // of the gradient's norm; 0: never
  AuxiliaryWeights auxiliary;  // of models that have such losses
  double mtp = 0;              // weight of the draft head's loss
  int64_t dense_steps = 0;     // attention to all keys in the first steps, while the indexer learns
  Precision precision = Precision::kF32;
  // Changes last bits.
  int64_t micro_batch = 0;  // rows per pass; 0: all of a step
  std::string device = "cpu";
  // Changes nothing but what is written.
  int64_t validate_every = 0, validation_rows = 16;
  int64_t checkpoint_every = 100;  // the state to go on from; 0: at the end only
  int64_t save_every = 0;          // models as they were at a step, in directories of their own
  int64_t stop_after = 0;          // end there, as an interrupt would; 0: at the end
};

struct FitData {
  Documents train;
  std::optional<Documents> validation;
  int32_t padding = 0;
};

struct FitReport {
  int64_t steps_done = 0;
  double last_loss = 0;
  double validation_loss = std::numeric_limits<double>::quiet_NaN();  // until measured
  bool was_stopped = false;
  std::string note = {};  // what could not be done and is no error: no gnuplot
};

/// What a run's directory holds: metrics.jsonl, state.safetensors, loss.png, step-NNNNNN/.
struct FitPlace {
  Storage& storage;
  Path directory;
  std::string recipe;   // resolved: recipe.toml, and part of the state; a resumed run must have the same
  bool resume = false;  // from state.safetensors
  ProgressStyle progress = ProgressStyle::kAuto;
};

/// Trains `net`, which is on the CPU when it comes and when it goes. With a stop, the step that runs is
/// finished and the state written. Confined. Errors: kInvalidArgument for a directory that holds a run
/// already, or, with resume, for other data or another recipe; kNotFound with resume where no run is;
/// kInternal for a loss that is not finite, with the step; kUnsupported for a device that is not there; those
/// of the files.
Result<FitReport> fit(Net& net, const FitData& data, const FitOptions& options, const FitPlace& place,
                      std::stop_token stop);

}  // namespace forebay::train
