/// Everything a recipe can say about a GRPO run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "train/grpo/advantages.h"
#include "train/grpo/controller.h"
#include "train/grpo/importance.h"
#include "train/grpo/objective.h"
#include "train/nets/toy.h"
#include "train/wire/codec_options.h"

namespace forebay::train {

struct GrpoSettings {
  struct {
    std::string path;  // GGUF or checkpoint directory; empty: a new toy over the task's alphabet
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
    int64_t every = 40;
    int64_t items = 2000;
  } validation;
  struct {
    int64_t stages = 1;
    int64_t micro_batch = 64;  // sequences
  } pipeline;
  struct {
    CodecOptions codec{.name = "none"};  // none: activations as they are, f32
    int64_t refresh_every = 20;          // steps between new bases, of codecs that have them
  } wire;
  struct {
    int64_t threads = 0;
    int64_t sequences = 256;
    int64_t context = 64;
    int64_t window = 1024;
  } sampler;
  struct {
    int64_t steps = 120;
    int64_t checkpoint_every = 60;
    int64_t seed = 1;
    std::string device = "cpu";
    int64_t threads = 0;  // of libtorch; 0: its default
    bool bf16 = false;    // matrices multiplied in bf16
  } run;

  /// Asks for every key and finishes the recipe. Errors: the recipe's first mistake; settings that do not go
  /// together.
  static Result<GrpoSettings> read(Recipe& recipe);
};

}  // namespace forebay::train
