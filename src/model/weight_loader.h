/// Finds tensors by name, checks their shapes, and copies the small ones to f32.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "model/weights.h"

namespace forebay {

class WeightLoader {
 public:
  /// Tensors that `copy` has are taken from there; it lives as long as the weights.
  WeightLoader(const GgufFile& file, const TrunkCopy& copy, Weights& owner, MemoryBudget& budget)
      : file_(&file), copy_(&copy), owner_(&owner), budget_(&budget) {}

  bool has(const std::string& name) const { return file_->find(name) != nullptr; }
  /// W with `in` columns and `out` rows, in place. ne = [in, out], or [in] when out is 1. F32 matrices are
  /// the small ones that choose and gate: they are checked to be finite, since a NaN there need not reach the
  /// logits.
  Result<MatrixView> matrix(const std::string& name, int64_t in, int64_t out) const;
  /// ne = [in, out, n].
  Result<ExpertMatrices> experts(const std::string& name, int64_t in, int64_t out, int64_t n) const;
  /// Rows of `width` values, at least `rows` of them (tables are padded); larger ones are kept whole.
  Result<MatrixView> table(const std::string& name, int64_t width, int64_t rows) const;
  /// n values as f32, checked to be finite.
  Result<std::span<const float>> vector(const std::string& name, int64_t n);
  /// A depthwise convolution stored [kernel, channels], transposed to [kernel][channels] rows of channels.
  Result<std::span<const float>> conv(const std::string& name, int64_t kernel, int64_t channels);

 private:
  Result<const TensorInfo*> find(const std::string& name, std::initializer_list<int64_t> ne) const;
  MatrixView view(const TensorInfo& tensor, int64_t in, int64_t rows) const;
  const std::byte* data_of(const TensorInfo& tensor) const;
  Result<std::span<float>> read_f32(const TensorInfo& tensor);

  const GgufFile* file_;
  const TrunkCopy* copy_;
  Weights* owner_;
  MemoryBudget* budget_;
};

}  // namespace forebay
