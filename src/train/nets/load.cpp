#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convert/tensor_plan.h"
#include "core/memory_storage.h"
#include "quant/quant.h"
#include "train/nets/config_json.h"
#include "train/nets/encode.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

using convert::Checkpoint;
using convert::CheckpointConfig;

bool is_gguf(const Path& path) {
  return path.extension() == ".gguf";
}

/// A checkpoint directory that was opened.
struct OpenCheckpoint {
  std::unique_ptr<CheckpointConfig> config;
  std::unique_ptr<Checkpoint> weights;
  ModelConfig model;
};

Result<OpenCheckpoint> open_checkpoint(Storage& storage, const Path& directory) {
  const convert::JsonObject json = TRY(convert::JsonObject::read(storage, directory / "config.json"));
  OpenCheckpoint open;
  open.config = std::make_unique<CheckpointConfig>(TRY(convert::read_checkpoint_config(json)));
  open.weights = std::make_unique<Checkpoint>(TRY(Checkpoint::open(storage, directory, *open.config)));
  Result<ModelConfig> model = model_config(*open.config, *open.weights);
  if (!model) return std::move(model).error().in(directory.string());
  open.model = std::move(*model);
  return open;
}

/// "model.layers.0..." -> "layers.0...", as a Checkpoint calls it.
std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "model.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

Result<void> fill_from_checkpoint(Checkpoint& checkpoint, Net& net) {
  for (const auto& item : net.named_parameters()) {
    const std::vector<uint64_t> shape = shape_of(item.value());
    const convert::WeightRows rows = TRY(checkpoint.take(without_prefix(item.key()), shape));
    float* to = item.value().data_ptr<float>();
    for (uint64_t row = 0; row < rows.n_rows; ++row)
      TRY(rows.read(row, 0, {to + row * rows.n_columns, rows.n_columns}));
  }
  return {};
}

/// One tensor of the file into the parameters that it is made of.
Result<void> fill_from_tensor(const GgufFile& file, const convert::OutputTensor& wanted,
                              const std::map<std::string, float*, std::less<>>& parameters) {
  const auto is_here = [&](const convert::RowSource::Piece& piece) {
    return parameters.contains(piece.name);
  };
  if (std::ranges::none_of(wanted.source.pieces(0), is_here)) return {};  // of another stage

  const TensorInfo* tensor = file.find(wanted.name);
  if (tensor == nullptr) return Error{Code::kNotFound, fmt::format("{}: missing tensor", wanted.name)};
  std::array<uint64_t, 4> ne{1, 1, 1, 1};
  std::ranges::copy(wanted.ne, ne.begin());
  if (tensor->ne != ne)
    return Error{Code::kCorrupt, fmt::format("{}: shape {}, wanted [{}]", wanted.name, shape_string(*tensor),
                                             fmt::join(wanted.ne, ", "))};
  if (find_codec(tensor->type) == nullptr)
    return Error{Code::kUnsupported,
                 fmt::format("{}: type {} does not hold weights", wanted.name, name_of(tensor->type))};

  const auto n_columns = static_cast<int64_t>(wanted.source.n_columns());
  const std::byte* bytes = file.bytes(*tensor).data();
  std::vector<float> row(static_cast<size_t>(n_columns));
  for (uint64_t r = 0; r < wanted.source.n_rows(); ++r, bytes += row_bytes(tensor->type, n_columns)) {
    decode_row(tensor->type, bytes, n_columns, row.data());
    wanted.source.undo_change(row);
    for (const convert::RowSource::Piece& piece : wanted.source.pieces(r))
      std::copy_n(row.data() + piece.column, piece.n, parameters.find(piece.name)->second + piece.first);
  }
  return {};
}

/// By the plan that would make the file of a checkpoint, the other way round.
Result<void> fill_from_gguf(const GgufFile& file, const ModelConfig& config, Net& net) {
  const convert::JsonObject json = TRY(convert::JsonObject::parse("config.json", config_json(config)));
  const CheckpointConfig checkpoint_config = TRY(convert::read_checkpoint_config(json));
  // The plan is of a whole checkpoint, which has names and shapes only.
  const std::shared_ptr<Net> whole = TRY(make_net(config, whole_model(config), std::nullopt));
  MemoryStorage memory;
  const Path directory = "checkpoint";
  TRY(write_safetensors(memory, directory / "model.safetensors", encode_shapes(config, *whole).entries));
  Checkpoint checkpoint = TRY(Checkpoint::open(memory, directory, checkpoint_config));
  convert::TensorPlan plan(checkpoint_config, checkpoint);
  TRY(plan.trunk());
  if (config.n_mtp_blocks > 0) TRY(plan.draft_head());

  std::map<std::string, float*, std::less<>> parameters;
  for (const auto& item : net.named_parameters()) parameters[item.key()] = item.value().data_ptr<float>();
  for (const convert::OutputTensor& wanted : plan.tensors()) TRY(fill_from_tensor(file, wanted, parameters));
  return {};
}

}  // namespace

NamedTensors named_tensors(const Net& net) {
  NamedTensors tensors;
  for (const auto& item : net.named_parameters())
    tensors[item.key()] = item.value().detach().to(torch::kCPU, torch::kFloat32);
  return tensors;
}

Result<ModelConfig> read_model_config(Storage& storage, const Path& path) {
  if (is_gguf(path)) {
    const GgufFile file = TRY(GgufFile::open(storage, path));
    return ModelConfig::from_gguf(file);
  }
  OpenCheckpoint open = TRY(open_checkpoint(storage, path));
  return std::move(open.model);
}

Result<std::shared_ptr<Net>> load_net(Storage& storage, const Path& path, std::optional<StageSpan> span) {
  const torch::NoGradGuard no_gradients;
  if (is_gguf(path)) {
    const GgufFile file = TRY(GgufFile::open(storage, path));
    const ModelConfig config = TRY(ModelConfig::from_gguf(file));
    std::shared_ptr<Net> net = TRY(make_net(config, span.value_or(whole_model(config)), std::nullopt));
    if (Result<void> filled = fill_from_gguf(file, config, *net); !filled)
      return std::move(filled).error().in(path.string());
    return net;
  }
  OpenCheckpoint open = TRY(open_checkpoint(storage, path));
  std::shared_ptr<Net> net = TRY(make_net(open.model, span.value_or(whole_model(open.model)), std::nullopt));
  if (Result<void> filled = fill_from_checkpoint(*open.weights, *net); !filled)
    return std::move(filled).error().in(path.string());
  return net;
}

}  // namespace forebay::train
