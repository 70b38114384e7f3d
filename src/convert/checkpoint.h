/// A checkpoint's weights: where they are, and what of them was used.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convert/checkpoint_config.h"
#include "safetensors/safetensors.h"

namespace forebay::convert {

/// A tensor seen as rows of its last dimension, with the scales that FP8 weights carry. A view: valid while
/// the checkpoint lives. Reading is thread-safe.
class WeightRows {
 public:
  uint64_t n_rows = 0, n_columns = 0;

  /// Elements [column, column + out.size()) of a row, widened to f32 and scaled.
  Result<void> read(uint64_t row, uint64_t column, std::span<float> out) const;
  /// As the file spells it.
  std::string_view name() const { return values_->name; }
  bool is_f16() const { return values_->type == SafeType::kF16; }

 private:
  friend class Checkpoint;
  const SafetensorsFile* file_ = nullptr;
  const SafeTensor* values_ = nullptr;
  const SafeTensor* scales_ = nullptr;  // null: none
  uint64_t rows_per_matrix_ = 0;        // scales start afresh with every matrix of a stack
  uint64_t block_rows_ = 0, block_columns_ = 0;
};

/// Names are those of the text model: "layers.0.self_attn.q_proj.weight", "lm_head.weight", "mtp.fc.weight";
/// the wrappers around it ("model.", "model.language_model.", ...) are taken off.
class Checkpoint {
 public:
  static Result<Checkpoint> open(Storage& storage, const Path& directory, const CheckpointConfig& config);

  bool has(std::string_view name) const { return tensors_.contains(name); }
  bool has_any(std::string_view prefix) const { return !names_from(prefix).empty(); }
  /// All names that start with `prefix`, sorted.
  std::vector<std::string> names_from(std::string_view prefix) const;

  /// A tensor of this shape, outermost first; further dimensions of 1 are allowed anywhere. Counts as used.
  /// Errors: kNotFound; kCorrupt with seen and wanted shape; kUnsupported for weights in a form that cannot
  /// be read here (8-bit without scales, integers).
  Result<WeightRows> take(std::string_view name, std::span<const uint64_t> shape);
  Result<WeightRows> take(std::string_view name, std::initializer_list<uint64_t> shape) {
    return take(name, std::span(shape.begin(), shape.size()));
  }
  /// The shape in the file.
  std::span<const uint64_t> shape_of(std::string_view name) const;
  /// A 64-bit integer tensor. Counts as used.
  Result<std::vector<uint64_t>> take_integers(std::string_view name);

  /// Names that nobody took.
  std::vector<std::string> unused() const;
  /// The name as the files spell it.
  std::string full_name(std::string_view name) const;

 private:
  std::unique_ptr<SafetensorsFile> file_;
  std::map<std::string, const SafeTensor*, std::less<>> tensors_;
  std::set<std::string, std::less<>> used_;
  std::string prefix_;  // what the layers' names have in front
  uint64_t fp8_block_rows_ = 0, fp8_block_columns_ = 0;
};

}  // namespace forebay::convert
