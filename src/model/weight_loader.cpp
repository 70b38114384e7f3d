#include "model/weight_loader.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quant/quant.h"

namespace forebay {

namespace {

Result<void> check_finite(std::string_view name, std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return Error{Code::kCorrupt,
                   fmt::format("{}: element {} is {}, expected finite weights", name, i, values[i])};
  return {};
}

}  // namespace

Result<const TensorInfo*> WeightLoader::find(const std::string& name,
                                             std::initializer_list<int64_t> ne) const {
  const TensorInfo* tensor = file_->find(name);
  if (tensor == nullptr) return Error{Code::kNotFound, fmt::format("{}: missing tensor", name)};
  size_t i = 0;
  bool fits = true;
  for (int64_t n : ne) fits = fits && tensor->ne[i++] == static_cast<uint64_t>(n);
  for (; i < tensor->ne.size(); ++i) fits = fits && tensor->ne[i] == 1;
  if (!fits)
    return Error{Code::kCorrupt, fmt::format("{}: shape {}, expected [{}]", name, shape_string(*tensor),
                                             fmt::join(ne, ", "))};
  if (find_codec(tensor->type) == nullptr)
    return Error{Code::kUnsupported,
                 fmt::format("{}: type {} does not hold weights", name, name_of(tensor->type))};
  return tensor;
}

const std::byte* WeightLoader::data_of(const TensorInfo& tensor) const {
  const std::byte* copied = copy_->find(tensor);
  return copied != nullptr ? copied : file_->bytes(tensor).data();
}

MatrixView WeightLoader::view(const TensorInfo& tensor, int64_t in, int64_t rows) const {
  MatrixView m;
  m.data = data_of(tensor);
  m.type = tensor.type;
  m.n_cols = in;
  m.n_rows = rows;
  m.row_stride_bytes = row_bytes(tensor.type, in);
  return m;
}

Result<MatrixView> WeightLoader::matrix(const std::string& name, int64_t in, int64_t out) const {
  const TensorInfo* tensor = TRY(find(name, {in, out}));
  if (tensor->type == DType::kF32) {
    const auto* values = reinterpret_cast<const float*>(data_of(*tensor));
    TRY(check_finite(name, {values, tensor->n_elements()}));
  }
  return view(*tensor, in, out);
}

Result<ExpertMatrices> WeightLoader::experts(const std::string& name, int64_t in, int64_t out,
                                             int64_t n) const {
  const TensorInfo* tensor = TRY(find(name, {in, out, n}));
  const MatrixView first = view(*tensor, in, out);
  return ExpertMatrices{first, out * first.row_stride_bytes, n, file_->shard_path(tensor->shard),
                        tensor->offset};
}

Result<MatrixView> WeightLoader::table(const std::string& name, int64_t width, int64_t rows) const {
  const TensorInfo* tensor = file_->find(name);
  if (tensor == nullptr) return Error{Code::kNotFound, fmt::format("{}: missing tensor", name)};
  const auto stored = static_cast<int64_t>(tensor->ne[1]);
  if (stored < rows)
    return Error{Code::kCorrupt, fmt::format("{}: shape {}, expected [{}, at least {}]", name,
                                             shape_string(*tensor), width, rows)};
  return matrix(name, width, stored);
}

Result<std::span<float>> WeightLoader::read_f32(const TensorInfo& tensor) {
  const auto n = static_cast<int64_t>(tensor.n_elements());
  Buffer buffer = TRY(Buffer::allocate(*budget_, static_cast<uint64_t>(n) * sizeof(float), "small weights"));
  const std::span<float> out = buffer.as<float>();
  decode_row(tensor.type, data_of(tensor), n, out.data());
  TRY(check_finite(tensor.name, out));
  owner_->owned_.push_back(std::move(buffer));
  return out;
}

Result<std::span<const float>> WeightLoader::vector(const std::string& name, int64_t n) {
  const TensorInfo* tensor = TRY(find(name, {n}));
  return std::span<const float>(TRY(read_f32(*tensor)));
}

Result<std::span<const float>> WeightLoader::conv(const std::string& name, int64_t kernel, int64_t channels) {
  const TensorInfo* tensor = TRY(find(name, {kernel, channels}));
  const std::span<float> taps = TRY(read_f32(*tensor));
  std::vector<float> transposed(taps.size());
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < kernel; ++k) transposed[k * channels + c] = taps[c * kernel + k];
  std::copy(transposed.begin(), transposed.end(), taps.begin());
  return std::span<const float>(taps);
}

}  // namespace forebay
