/// The flags that open an engine.
#pragma once

#include <string>

#include "forebay/engine.h"

#include "cli/flags.h"

namespace forebay::cli {

struct EngineFlags {
  std::string model;
  int64_t threads = 0;
  int64_t context = 0;
  int64_t chunk = 256;
  uint64_t memory_limit = 0;
  bool reference_kernels = false;

  void declare_model(FlagTable& flags);
  void declare_context(FlagTable& flags);
  void declare_speed(FlagTable& flags);
  void declare_kernels(FlagTable& flags);

  /// The options for Engine::open; fills in the embedded model when none was named.
  Result<EngineOptions> resolve();
  /// Takes over what the engine chose for values that were left to it.
  void adopt(const ModelInfo& info);
};

}  // namespace forebay::cli
