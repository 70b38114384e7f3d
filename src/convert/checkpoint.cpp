#include "convert/checkpoint.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace forebay::convert {
namespace {

// Longest first.
constexpr std::string_view kPrefixes[] = {"model.language_model.", "language_model.model.", "language_model.",
                                          "model."};

std::string_view prefix_of(std::string_view name) {
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return prefix;
  return {};
}

std::string shape_text(std::span<const uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Equal but for dimensions of 1: a convolution's [channels, 1, kernel] is [channels, kernel].
bool same_shape(std::span<const uint64_t> seen, std::span<const uint64_t> wanted) {
  size_t s = 0, w = 0;
  while (s < seen.size() || w < wanted.size()) {
    if (s < seen.size() && w < wanted.size() && seen[s] == wanted[w]) {
      ++s, ++w;
    } else if (s < seen.size() && seen[s] == 1) {
      ++s;
    } else if (w < wanted.size() && wanted[w] == 1) {
      ++w;
    } else {
      return false;
    }
  }
  return true;
}

bool holds_weights(SafeType type) {
  return type == SafeType::kF64 || type == SafeType::kF32 || type == SafeType::kF16 ||
         type == SafeType::kBF16;
}

uint64_t divide_up(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

Result<void> WeightRows::read(uint64_t row, uint64_t column, std::span<float> out) const {
  TRY(file_->read_f32(*values_, row * n_columns + column, out));
  if (scales_ == nullptr) return {};
  const uint64_t matrix = row / rows_per_matrix_, matrix_row = row % rows_per_matrix_;
  const uint64_t scale_rows = divide_up(rows_per_matrix_, block_rows_);
  const uint64_t scale_columns = divide_up(n_columns, block_columns_);
  const uint64_t first_scale = (matrix * scale_rows + matrix_row / block_rows_) * scale_columns;
  for (size_t begin = 0; begin < out.size();) {
    const uint64_t block = (column + begin) / block_columns_;
    const size_t end = std::min<uint64_t>(out.size(), (block + 1) * block_columns_ - column);
    float scale = 0;
    TRY(file_->read_f32(*scales_, first_scale + block, {&scale, 1}));
    for (; begin < end; ++begin) out[begin] *= scale;
  }
  return {};
}

Result<Checkpoint> Checkpoint::open(Storage& storage, const Path& directory, const CheckpointConfig& config) {
  Checkpoint checkpoint;
  checkpoint.file_ = std::make_unique<SafetensorsFile>(TRY(SafetensorsFile::open(storage, directory)));
  checkpoint.fp8_block_rows_ = config.fp8_block_rows;
  checkpoint.fp8_block_columns_ = config.fp8_block_columns;
  for (const SafeTensor& tensor : checkpoint.file_->tensors()) {
    const std::string_view prefix = prefix_of(tensor.name);
    const auto [at, is_new] = checkpoint.tensors_.emplace(tensor.name.substr(prefix.size()), &tensor);
    if (!is_new)
      return Error{Code::kCorrupt, fmt::format("tensors {} and {} have the same place in the model",
                                               at->second->name, tensor.name)};
    if (at->first.starts_with("layers.")) checkpoint.prefix_ = prefix;
  }
  return checkpoint;
}

std::vector<std::string> Checkpoint::names_from(std::string_view prefix) const {
  std::vector<std::string> names;
  for (auto at = tensors_.lower_bound(prefix); at != tensors_.end() && at->first.starts_with(prefix); ++at)
    names.push_back(at->first);
  return names;
}

std::string Checkpoint::full_name(std::string_view name) const {
  if (const auto at = tensors_.find(name); at != tensors_.end()) return at->second->name;
  const bool is_outside = name.starts_with("lm_head.") || name.starts_with("mtp.");
  return (is_outside ? "" : prefix_) + std::string(name);
}

std::span<const uint64_t> Checkpoint::shape_of(std::string_view name) const {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) return {};
  return at->second->shape;
}

Result<WeightRows> Checkpoint::take(std::string_view name, std::span<const uint64_t> shape) {
  const auto at = tensors_.find(name);
  if (at == tensors_.end())
    return Error{Code::kNotFound,
                 fmt::format("tensor {} is missing, wanted {}", full_name(name), shape_text(shape))};
  const SafeTensor& tensor = *at->second;
  if (!same_shape(tensor.shape, shape))
    return Error{Code::kCorrupt, fmt::format("tensor {}: shape {}, wanted {}", tensor.name,
                                             shape_text(tensor.shape), shape_text(shape))};
  used_.insert(at->first);

  WeightRows rows;
  rows.file_ = file_.get();
  rows.values_ = &tensor;
  rows.n_columns = shape.back();
  rows.n_rows = 1;
  for (const uint64_t dim : shape.first(shape.size() - 1)) rows.n_rows *= dim;
  if (holds_weights(tensor.type)) return rows;

  if (tensor.type != SafeType::kF8E4M3)
    return Error{Code::kUnsupported,
                 fmt::format("tensor {}: type {}, wanted F32, F16, BF16 or F8_E4M3 with scales", tensor.name,
                             name_of(tensor.type))};
  const auto scales = tensors_.find(std::string(name) + "_scale_inv");
  if (fp8_block_rows_ == 0 || scales == tensors_.end() || shape.size() < 2)
    return Error{
        Code::kUnsupported,
        fmt::format("tensor {}: type {} without block scales (quantization_config in config.json and "
                    "tensor {}_scale_inv)",
                    tensor.name, name_of(tensor.type), tensor.name)};
  rows.rows_per_matrix_ = shape[shape.size() - 2];
  rows.block_rows_ = fp8_block_rows_;
  rows.block_columns_ = fp8_block_columns_;
  std::vector<uint64_t> wanted(shape.begin(), shape.end());
  wanted[wanted.size() - 2] = divide_up(rows.rows_per_matrix_, fp8_block_rows_);
  wanted[wanted.size() - 1] = divide_up(rows.n_columns, fp8_block_columns_);
  if (!same_shape(scales->second->shape, wanted) || !holds_weights(scales->second->type))
    return Error{Code::kCorrupt, fmt::format("tensor {}: {} {}, wanted floats {}", scales->second->name,
                                             name_of(scales->second->type), shape_text(scales->second->shape),
                                             shape_text(wanted))};
  rows.scales_ = scales->second;
  used_.insert(scales->first);
  return rows;
}

Result<std::vector<uint64_t>> Checkpoint::take_integers(std::string_view name) {
  const auto at = tensors_.find(name);
  if (at == tensors_.end())
    return Error{Code::kNotFound, fmt::format("tensor {} is missing, wanted a list of I64", full_name(name))};
  const SafeTensor& tensor = *at->second;
  if (tensor.type != SafeType::kI64 || tensor.shape.size() != 1)
    return Error{Code::kCorrupt, fmt::format("tensor {}: {} {}, wanted a list of I64", tensor.name,
                                             name_of(tensor.type), shape_text(tensor.shape))};
  used_.insert(at->first);
  const std::span<const std::byte> bytes = file_->bytes(tensor);
  std::vector<uint64_t> values(tensor.shape[0]);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string> Checkpoint::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_)
    if (!used_.contains(name)) names.push_back(name);
  return names;
}

}  // namespace forebay::convert
