/// Everything a recipe can say about a GRPO run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "train/anchor/safe_mask.h"
#include "train/comm/circuits.h"
#include "train/grpo/advantages.h"
#include "train/grpo/controller.h"
#include "train/grpo/importance.h"
#include "train/grpo/objective.h"
#include "train/nets/toy.h"
#include "train/wire/basis.h"
#include "train/wire/codec_options.h"

namespace forebay::train {

/// What the sampler computes with.
enum class SamplerWeights {
  kF32,        // the policy's own, all of them sent each time
  kBf16Delta,  // rounded to bf16, and only those sent of which that changed
};

struct GrpoSettings {
  struct {
    std::string path;       // GGUF or checkpoint directory; empty: a new toy over the task's alphabet
    std::string tokenizer;  // GGUF or directory with tokenizer.json; empty: what comes with the model
    DenseSizes toy;
    int64_t seed = 1;
  } model;
  struct {
    std::string name = "add-2d";
    int64_t seed = 1;
    bool repeat_first = false;  // every step sees the first one's prompts and draws: for tests of drift
  } task;
  /// Before GRPO: cross-entropy on the task's own answers.
  struct {
    int64_t steps = 0;
    int64_t batch = 128;
    double lr = 1e-3;
  } sft;
  struct {
    int64_t prompts = 32;
    int64_t answers = 8;
    int64_t max_tokens = 0;  // 0: what the task's answers need
    double lr = 3e-4;
    int64_t warmup = 10;
    double weight_decay = 0;
    double clip_norm = 1;
    int64_t ticks = 1;  // updates per batch
  } grpo;
  AdvantageOptions advantage;
  ObjectiveOptions objective;
  ImportanceOptions importance;
  struct {
    bool enabled = false;
    std::vector<double> table;
    std::string table_file;
    double kappa = 1.5;
    ControllerOptions options;
  } controller;
  struct {
    bool enabled = false;
    BrakeOptions options;
  } brake;
  struct {
    int64_t every = 10;  // steps; 0: never
  } probe;
  struct {
    int64_t every = 0;  // steps between KL ledgers; 0: never
  } ledger;
  struct {
    int64_t every = 40;
    int64_t items = 2000;
  } validation;
  struct {
    int64_t stages = 1;        // across processes: as many as there are
    int64_t micro_batch = 64;  // sequences
  } pipeline;
  CommOptions comm;  // between processes
  struct {
    CodecOptions codec{.name = "none"};  // none: activations as they are, f32
    int64_t refresh_every = 20;          // steps between new bases, of codecs that have them
    /// kAtOnce is a control: the mistake of changing a basis before the step that uses it has ended.
    Publish publish = Publish::kStaged;
  } wire;
  /// The slow circuit.
  struct {
    int64_t every = 0;  // ticks between fires; 0: off
    double mu = 0.9;
    double step = 0;      // what a sign moves a weight by; 0: a tenth of grpo.lr
    bool masked = false;  // signs of safe weights only
    SafeMaskOptions mask;
  } anchor;
  struct {
    int64_t threads = 0;
    int64_t sequences = 256;
    int64_t context = 64;
    int64_t window = 1024;
    SamplerWeights weights = SamplerWeights::kF32;
    int64_t refresh_every = 1;  // steps; between them the sampler's weights grow stale
  } sampler;
  struct {
    int64_t steps = 120;
    int64_t checkpoint_every = 60;
    int64_t seed = 1;
    std::string device = "cpu";
    int64_t threads = 0;  // of libtorch; 0: its default
    bool bf16 = false;    // matrices multiplied in bf16
  } run;

  /// Asks for every key and finishes the recipe, for a run of this many processes. Errors: the recipe's first
  /// mistake; settings that do not go together.
  static Result<GrpoSettings> read(Recipe& recipe, int n_processes = 1);
};

}  // namespace forebay::train
