#include "test_checkpoint.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "quant/quant.h"

namespace forebay {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

}  // namespace

std::vector<float> TestTensor::floats() const {
  MemoryStorage storage;
  const SafeTensorData data{"t", type, shape, bytes};
  if (Result<void> done = write_safetensors(storage, "t", {&data, 1}); !done)
    throw std::runtime_error(done.error().message);
  const SafetensorsFile file = must(SafetensorsFile::open(storage, "t"));
  std::vector<float> values(file.find("t")->n_elements());
  if (Result<void> done = file.read_f32(*file.find("t"), 0, values); !done)
    throw std::runtime_error(done.error().message);
  return values;
}

TestCheckpoint TestCheckpoint::vectors(const std::string& family) {
  const Path directory = Path(FOREBAY_TEST_DATA) / "vectors" / family;
  TestCheckpoint checkpoint;
  std::ifstream(directory / "config.json") >> checkpoint.config;
  const auto storage = make_posix_storage();
  const SafetensorsFile file = must(SafetensorsFile::open(*storage, directory));
  for (const SafeTensor& tensor : file.tensors()) {
    const auto bytes = file.bytes(tensor);
    checkpoint.tensors[tensor.name] = {tensor.type, tensor.shape, {bytes.begin(), bytes.end()}};
  }
  return checkpoint;
}

TestCheckpoint TestCheckpoint::with_draft_head() {
  TestCheckpoint c = vectors("qwen4exp");
  const auto tensors = c.tensors;
  for (const auto& [name, tensor] : tensors) {
    for (const auto& [from, to] : {std::pair("model.layers.3.", "mtp.layers.0."),
                                   std::pair("model.hyper_connection_mixer.", "mtp.hyper_connection_mixer.")})
      if (name.starts_with(from)) c.tensors[to + name.substr(std::strlen(from))] = tensor;
  }
  c.tensors["mtp.fc_embedding.weight"] = c.tensors["model.layers.1.ple.value_proj.weight"];  // [64, 64]
  c.tensors["mtp.fc_hidden.weight"] = c.tensors["model.layers.3.self_attn.k_proj.weight"];   // [64, 64]
  c.tensors["mtp.pre_fc_norm_hidden.weight"] = c.tensors["model.layers.1.ple.norm_key.weight"];
  c.set("mtp.pre_fc_norm_embedding.weight", {64}, std::vector<float>(64, 0.25f));
  return c;
}

TestCheckpoint TestCheckpoint::with_plain_draft_head(const std::string& family) {
  TestCheckpoint c = vectors(family);
  const auto tensors = c.tensors;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with("model.layers.3.")) c.tensors["mtp.layers.0." + name.substr(15)] = tensor;
  c.tensors["mtp.fc.weight"] = c.tensors["model.layers.3.self_attn.o_proj.weight"];  // [64, 128]
  for (const char* name :
       {"mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"})
    c.tensors[name] = c.tensors["model.norm.weight"];
  return c;
}

TestCheckpoint TestCheckpoint::llama() {
  TestCheckpoint c = vectors("qwen2");
  std::erase_if(c.tensors, [](const auto& entry) { return entry.first.ends_with(".bias"); });
  c.config["model_type"] = "llama";
  return c;
}

void TestCheckpoint::set(const std::string& name, std::vector<uint64_t> shape,
                         const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  tensors[name] = {SafeType::kF32, std::move(shape), {bytes.begin(), bytes.end()}};
}

void TestCheckpoint::rename_all(const std::string& prefix, const std::string& new_prefix) {
  std::map<std::string, TestTensor> renamed;
  for (auto& [name, tensor] : tensors)
    renamed[name.starts_with(prefix) ? new_prefix + name.substr(prefix.size()) : name] = std::move(tensor);
  tensors = std::move(renamed);
}

void TestCheckpoint::write(MemoryStorage& storage, int n_shards) const {
  storage.put(kCheckpoint / "config.json", config.dump(1));
  for (const auto& [name, text] : files) storage.put(kCheckpoint / name, text);
  std::vector<std::vector<SafeTensorData>> shards(n_shards);
  nlohmann::json weight_map;
  size_t i = 0;
  const auto file_name = [&](size_t shard) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, n_shards);
  };
  for (const auto& [name, tensor] : tensors) {
    const size_t shard = i++ % n_shards;
    shards[shard].push_back({name, tensor.type, tensor.shape, tensor.bytes});
    weight_map[name] = file_name(shard);
  }
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    const Path path = kCheckpoint / (n_shards == 1 ? "model.safetensors" : file_name(shard));
    if (Result<void> done = write_safetensors(storage, path, shards[shard]); !done)
      throw std::runtime_error(done.error().message);
  }
  if (n_shards > 1)
    storage.put(kCheckpoint / "model.safetensors.index.json",
                nlohmann::json{{"weight_map", weight_map}}.dump());
}

ConvertOptions convert_options(const std::string& types, MtpMode mtp) {
  ConvertOptions options;
  options.types = must(parse_type_plan(types));
  options.mtp = mtp;
  options.name = "test";
  return options;
}

Result<ConvertReport> convert_in(Storage& storage, const ConvertOptions& options, std::stop_token stop) {
  ThreadPool pool(2);
  return convert_checkpoint(
      storage, kCheckpoint, kOutput, options, pool, [](const ConvertProgress&) {}, stop);
}

Converted::Converted(const TestCheckpoint& checkpoint, const ConvertOptions& options, int n_shards) {
  checkpoint.write(storage, n_shards);
  report = must(convert_in(storage, options));
  if (!options.dry_run) file = std::make_unique<GgufFile>(must(GgufFile::open(storage, kOutput)));
}

std::vector<float> Converted::floats_of(const GgufFile& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error("no tensor " + name);
  std::vector<float> values(tensor->n_elements());
  decode_row(tensor->type, file.bytes(*tensor).data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

}  // namespace forebay
