/// Models of every family, small enough to be written in a few milliseconds.
#pragma once

#include <stdexcept>
#include <string>

#include "synth/synth.h"

namespace forebay::synth {

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

inline GeometryChanges small_changes(const std::string& name) {
  GeometryChanges changes{.n_blocks = 4, .d_model = 64, .n_experts = 8, .n_used = 2, .expert_width = 32};
  changes.n_heads = 4;
  changes.n_kv_heads = 2;
  changes.head_dim = 32;
  changes.n_vocab = 512;
  changes.context_length = 4096;
  if (name == "qwen3-30b-a3b") return changes;
  changes.shared_width = 32;
  changes.n_delta_key_heads = 2;
  changes.n_delta_value_heads = 4;
  changes.delta_dim = 16;
  if (name != "qwen3.8-flash-next") return changes;
  changes.stream_rank = 32;
  changes.n_ngram_rows = 2000;
  return changes;
}

inline SynthOptions small_options(const std::string& name, const std::string& types = "q2_0") {
  SynthOptions options;
  options.geometry = must(changed(must(find_geometry(name)), small_changes(name)));
  options.types = must(parse_type_plan(types, WeightSource::kRandom));
  return options;
}

}  // namespace forebay::synth
