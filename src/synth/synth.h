/// GGUF files of real geometry with random weights: what a model costs to read, cache and compute, without
/// the model. Weights are made in place, at the speed of the disk; see deck.h for how and statistics.h for
/// what.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "convert/type_plan.h"
#include "core/function_ref.h"
#include "core/path.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "gguf/gguf.h"
#include "synth/geometry.h"
#include "synth/statistics.h"
#include "synth/tensor_list.h"

namespace forebay {

struct SynthOptions {
  synth::Geometry geometry;
  /// As for convert: the default type for the experts and the n-gram table, that or Q8_0 for other matrices.
  TypePlan types;
  synth::RoutingStatistics routing;
  uint64_t seed = 1;  // same options, same bytes
  std::string name;   // general.name; empty: the geometry's title and "synthetic"
};

/// Everything that is known before the first byte is written.
struct SynthPlan {
  struct TypeShare {
    int n_tensors = 0;
    uint64_t bytes = 0;
  };
  GgufMetadata metadata;
  std::vector<synth::SynthTensor> tensors;
  std::vector<DType> types;  // one per tensor
  uint64_t seed = 0;
  uint64_t n_parameters = 0;
  uint64_t tensor_bytes = 0;  // without headers and padding
  uint64_t file_bytes = 0;    // exactly what write_synthetic writes
  uint64_t expert_bytes = 0;  // one expert of the first block
  std::map<DType, TypeShare> by_type;
  std::vector<std::string> notes;  // types that were replaced, parts that were left out

  uint64_t tensor_size(size_t i) const;
};

/// Errors: kInvalidArgument naming the option, its value and what it must be.
Result<SynthPlan> plan_synthetic(const SynthOptions& options);

struct SynthProgress {
  uint64_t bytes_done, n_bytes;  // of tensors
  std::string_view tensor;       // the one being written
};

/// Writes the planned file in pieces of a few MiB; memory use does not grow with the model. The bytes do not
/// depend on the number of threads. Nothing appears under `path` until everything is written and synced;
/// after an error or a stop nothing is left behind. Errors: those of the storage, kCancelled after a stop.
Result<void> write_synthetic(Storage& storage, const Path& path, const SynthPlan& plan, ThreadPool& pool,
                             FunctionRef<void(const SynthProgress&)> progress, std::stop_token stop);

}  // namespace forebay
