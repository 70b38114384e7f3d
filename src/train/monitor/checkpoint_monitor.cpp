#include "train/monitor/checkpoint_monitor.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "safetensors/safetensors.h"
#include "train/anchor/weights_of.h"

namespace forebay::train {
namespace {

std::optional<torch::ScalarType> float_type(SafeType type) {
  switch (type) {
    case SafeType::kF64:
      return torch::kFloat64;
    case SafeType::kF32:
      return torch::kFloat32;
    case SafeType::kF16:
      return torch::kFloat16;
    case SafeType::kBF16:
      return torch::kBFloat16;
    default:
      return std::nullopt;
  }
}

/// [matrices, rows, columns]. Copied: in the file, nothing need be aligned.
torch::Tensor stack_of(const SafetensorsFile& file, const SafeTensor& tensor, torch::ScalarType type) {
  const auto rows = static_cast<int64_t>(tensor.shape[tensor.shape.size() - 2]);
  const auto columns = static_cast<int64_t>(tensor.shape.back());
  const auto n = static_cast<int64_t>(tensor.n_elements()) / (rows * columns);
  torch::Tensor out = torch::empty({n, rows, columns}, torch::dtype(type));
  const std::span<const std::byte> bytes = file.bytes(tensor);
  std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  return out;
}

/// Mean of what was computed.
struct Mean {
  double sum = 0;
  int64_t n = 0;
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum += value;
    ++n;
  }
  double value() const {
    return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(n);
  }
};

std::vector<LayerChange> by_layer(const std::vector<NamedChange>& matrices) {
  struct Sums {
    int64_t n = 0;
    double changed = 0, entries = 0;
    double angle = std::numeric_limits<double>::quiet_NaN();
    Mean shift, overlap, rank;
  };
  std::map<int, Sums> layers;
  for (const NamedChange& matrix : matrices) {
    const MatrixChange& c = matrix.change;
    Sums& sums = layers[matrix.layer < 0 ? std::numeric_limits<int>::max() : matrix.layer];
    const double entries = static_cast<double>(c.rows) * static_cast<double>(c.columns);
    ++sums.n;
    sums.changed += c.changed_bf16 * entries;
    sums.entries += entries;
    sums.shift.add(c.spectral_shift);
    if (std::isfinite(c.angle_left))
      sums.angle = std::fmax(sums.angle, std::max(c.angle_left, c.angle_right));
    if (c.identical) continue;  // has no update whose directions or places could be told
    sums.overlap.add(c.principal_overlap);
    sums.rank.add(c.effective_rank_share());
  }
  std::vector<LayerChange> out;
  for (const auto& [layer, sums] : layers)
    out.push_back({layer == std::numeric_limits<int>::max() ? -1 : layer, sums.n, sums.changed / sums.entries,
                   sums.shift.value(), sums.angle, sums.overlap.value(), sums.rank.value()});
  return out;
}

}  // namespace

int layer_of(std::string_view name) {
  for (const std::string_view before : {"layers.", "blk.", "blocks."}) {
    const size_t at = name.find(before);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
    const std::string_view rest = name.substr(at + before.size());
    int layer = 0;
    const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    if (failed == std::errc() && layer >= 0 && end != rest.data() + rest.size() && *end == '.') return layer;
  }
  return -1;
}

Result<CheckpointChange> compare_checkpoints(Storage& storage, const Path& base, const Path& now,
                                             const MonitorOptions& options,
                                             const std::function<void(size_t, size_t)>& progress) {
  const SafetensorsFile before = TRY(SafetensorsFile::open(storage, base));
  const SafetensorsFile after = TRY(SafetensorsFile::open(storage, now));
  const WeightNames names_before(before), names_after(after);
  std::map<std::string, const SafeTensor*> weights_after;
  for (const SafeTensor& tensor : after.tensors())
    if (const std::optional<std::string> name = names_after.of(tensor.name)) weights_after[*name] = &tensor;
  CheckpointChange out;
  size_t done = 0;
  for (const SafeTensor& tensor : before.tensors()) {
    if (progress) progress(++done, before.tensors().size());
    const std::optional<torch::ScalarType> type = float_type(tensor.type);
    const std::optional<std::string> name = names_before.of(tensor.name);
    if (!name || !type || tensor.shape.size() < 2 || tensor.n_elements() == 0) continue;
    const auto found = weights_after.find(*name);
    const SafeTensor* const other = found == weights_after.end() ? nullptr : found->second;
    if (other == nullptr || other->shape != tensor.shape || other->type != tensor.type)
      return Error{Code::kInvalidArgument, fmt::format("{}: no {} of the base's shape and type ({})",
                                                       now.string(), *name, name_of(tensor.type))};
    const torch::Tensor a = stack_of(before, tensor, *type), b = stack_of(after, *other, *type);
    for (int64_t i = 0; i < a.size(0); ++i)
      out.matrices.push_back({a.size(0) == 1 ? *name : fmt::format("{}[{}]", *name, i), layer_of(*name),
                              compare(a[i], b[i], options)});
  }
  if (out.matrices.empty())
    return Error{Code::kInvalidArgument, fmt::format("{}: no matrix in it", base.string())};
  out.layers = by_layer(out.matrices);
  return out;
}

}  // namespace forebay::train
