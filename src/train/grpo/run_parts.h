/// What a run consists of, and how it comes to be: new, or from a checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "forebay/result.h"

#include "core/storage.h"
#include "core/world.h"
#include "train/grpo/controller.h"
#include "train/grpo/drawer.h"
#include "train/grpo/learner.h"
#include "train/grpo/slow_circuit.h"
#include "train/grpo/team.h"
#include "train/grpo/trainer.h"
#include "train/grpo/views.h"
#include "train/grpo/weight_feed.h"

namespace forebay::train {

/// Confined. Members in the order in which they are made; functions are collective.
struct RunParts {
  RunParts(Storage& storage, Recipe recipe, GrpoSettings settings, Path directory, RunObserver observer)
      : storage(storage),
        recipe(std::move(recipe)),
        settings(std::move(settings)),
        directory(std::move(directory)),
        observer(std::move(observer)) {}

  Storage& storage;
  Recipe recipe;
  GrpoSettings settings;
  Path directory;
  RunObserver observer;

  std::unique_ptr<Drawer> drawer;  // the leader's
  std::unique_ptr<Team> team;
  torch::Device device = torch::kCPU;
  std::shared_ptr<Net> policy, reference;
  std::unique_ptr<Views> views;
  std::unique_ptr<WeightFeed> feed;
  std::unique_ptr<SlowCircuit> anchor;  // null: off
  std::unique_ptr<Learner> learner;
  std::optional<BetaController> controller;
  std::optional<LrBrake> brake;
  std::optional<MetricsLog> log;  // the leader's
  int64_t step = 0;               // done
  // The leader's.
  NamedTensors whole_reference;
  std::string reference_hash;

  Sampler* sampler() { return drawer ? &drawer->sampler() : nullptr; }

  /// The process that rewards, the others, the model, its views. Errors: also in all processes what went
  /// wrong in one.
  Result<void> make(const World& world);
  /// A warm start, its reference, a first checkpoint. Errors: kCancelled.
  Result<void> begin(std::stop_token stop);
  /// From the directory's last checkpoint. Errors: kNotFound; kCorrupt; kInvalidArgument for settings that
  /// change results.
  Result<void> go_on();
  Result<void> save();

 private:
  Result<void> make_model(const World& world);
  /// What needs the reference as it stays.
  Result<void> finish();
  Result<void> write_recipe();
};

}  // namespace forebay::train
