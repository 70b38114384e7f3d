/// Sizes of published models, and how to change them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "convert/checkpoint_config.h"

namespace forebay::synth {

/// What a model with random weights needs to know of the real one.
struct Geometry {
  std::string name;   // "qwen3.8-flash-next"
  std::string title;  // as general.name has it
  convert::CheckpointConfig config;
  uint64_t n_ngram_rows = 0;  // least rows of the n-gram table; 0: there is none
};

/// Names that `find_geometry` knows, the default first.
std::vector<std::string> geometry_names();

/// Errors: kInvalidArgument, with the known names.
Result<Geometry> find_geometry(std::string_view name);

/// Sizes to use instead of a geometry's own. What depends on one follows: rotated dimensions are the same
/// share of a smaller head.
struct GeometryChanges {
  std::optional<uint64_t> n_blocks = {};
  std::optional<uint64_t> d_model = {};
  std::optional<uint64_t> n_experts = {};
  std::optional<uint64_t> n_used = {};
  std::optional<uint64_t> expert_width = {};
  std::optional<uint64_t> shared_width = {};
  std::optional<uint64_t> n_heads = {};
  std::optional<uint64_t> n_kv_heads = {};
  std::optional<uint64_t> head_dim = {};
  std::optional<uint64_t> n_delta_key_heads = {};
  std::optional<uint64_t> n_delta_value_heads = {};
  std::optional<uint64_t> delta_dim = {};
  std::optional<uint64_t> stream_rank = {};
  std::optional<uint64_t> n_vocab = {};
  std::optional<uint64_t> n_ngram_rows = {};
  std::optional<uint64_t> context_length = {};
};

/// Errors: kInvalidArgument naming the size, its value and what it must be.
Result<Geometry> changed(Geometry geometry, const GeometryChanges& changes);

}  // namespace forebay::synth
