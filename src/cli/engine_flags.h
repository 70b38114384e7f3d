/// The flags that open an engine.
#pragma once

#include <optional>
#include <string>

#include "forebay/engine.h"

#include "cli/flags.h"

namespace forebay::cli {

struct EngineFlags {
  std::string model;
  int64_t threads = 0;
  std::optional<std::string> pin;
  int64_t context = 0;
  int64_t chunk = 0;
  uint64_t memory_limit = 0;
  std::optional<std::string> experts;
  uint64_t budget = 0;
  std::optional<std::string> trunk;
  std::optional<std::string> policy;
  std::optional<std::string> prefetch;
  std::optional<std::string> io;
  float route_bias = 0;
  float route_bias_prompt = 0;
  std::optional<double> max_kld;
  std::string route_curve;
  std::string trace;
  std::string pack;
  std::optional<std::string> activations = "f32";  // commands that answer people set "int8"
  std::optional<std::string> kv = "f32";           // those leave it to the model: absent
  bool reference_kernels = false;
  std::string cache_dir;
  uint64_t cache_size = uint64_t{8} << 30;
  std::optional<std::string> reuse_edits = "off";

  void declare_model(FlagTable& flags);
  void declare_context(FlagTable& flags);
  void declare_speed(FlagTable& flags);
  void declare_kernels(FlagTable& flags);
  void declare_placement(FlagTable& flags);  // of experts
  void declare_experts(FlagTable& flags);    // that, and what routing does with it
  void declare_cache(FlagTable& flags);
  void declare_edits(FlagTable& flags);

  /// The options for Engine::open; fills in the embedded model when none was named. Errors: kInvalidArgument
  /// for flags that contradict each other.
  Result<EngineOptions> resolve();
  /// The route bias that --max-kld and --route-curve come to. Errors: kInvalidArgument when the curve is of
  /// another model.
  Result<void> choose_route_bias();
  /// Takes over what the engine chose for values that were left to it.
  void adopt(const ModelInfo& info);
};

}  // namespace forebay::cli
