#include <fmt/format.h>

#include "convert/convert.h"
#include "core/memory_storage.h"
#include "train/nets/config_json.h"
#include "train/nets/encode.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

// What belongs to a tokenizer in a checkpoint directory; each may be missing.
constexpr const char* kVocabularyFiles[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                                            "generation_config.json"};

Result<void> write_text(Storage& storage, const Path& path, const std::string& text) {
  AtomicFile file = TRY(AtomicFile::create(storage, path));
  TRY(file.file().append(std::as_bytes(std::span(text))));
  return file.commit();
}

/// Reads a checkpoint directory that is in memory; everything else is real.
class MemoryAbove : public Storage {
 public:
  MemoryAbove(MemoryStorage& memory, Storage& below) : memory_(memory), below_(below) {}

  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override {
    return memory_.exists(path) ? memory_.open(path) : below_.open(path);
  }
  Result<std::unique_ptr<WritableFile>> create(const Path& path) override { return below_.create(path); }
  Result<void> rename(const Path& from, const Path& to) override { return below_.rename(from, to); }
  Result<void> remove(const Path& path) override { return below_.remove(path); }
  bool exists(const Path& path) override { return memory_.exists(path) || below_.exists(path); }

 private:
  MemoryStorage& memory_;
  Storage& below_;
};

/// The tokenizer of a GGUF file: its keys as they are.
Result<GgufMetadata> vocabulary_of(Storage& storage, const Path& gguf) {
  const GgufFile file = TRY(GgufFile::open(storage, gguf));
  GgufMetadata metadata;
  for (const auto& [key, value] : file.metadata().entries())
    if (key.starts_with("tokenizer.") || key.starts_with("general.sampling.") ||
        key.starts_with("forebay.tokenizer."))
      metadata.set(key, value);
  return metadata;
}

Result<void> check_names(const ModelConfig& config, const NamedTensors& tensors) {
  const std::shared_ptr<Net> whole = TRY(make_net(config, whole_model(config), std::nullopt));
  for (const auto& item : whole->named_parameters()) {
    const auto at = tensors.find(item.key());
    if (at == tensors.end() || at->second.sizes() != item.value().sizes())
      return Error{Code::kInvalidArgument,
                   fmt::format("a model to write: tensor {} is missing or of another shape", item.key())};
  }
  return {};
}

}  // namespace

Result<void> save_checkpoint(Storage& storage, const Path& directory, const ModelConfig& config,
                             const NamedTensors& tensors, SavedType type) {
  TRY(check_names(config, tensors));
  TRY(storage.make_directory(directory));
  TRY(write_safetensors(storage, directory / "model.safetensors",
                        encode_tensors(config, tensors, type).entries, {{"format", "pt"}}));
  return write_text(storage, directory / "config.json", config_json(config));
}

Result<void> save_net(Storage& storage, const Path& directory, const Net& net, SavedType type) {
  return save_checkpoint(storage, directory, net.config(), named_tensors(net), type);
}

Result<void> write_gguf(Storage& storage, const Path& path, const ModelConfig& config,
                        const NamedTensors& tensors, const Path& vocabulary, SavedType type) {
  TRY(check_names(config, tensors));
  MemoryStorage memory;
  const Path directory = path.string() + " (in memory)";
  memory.put(directory / "config.json", config_json(config));
  TRY(write_safetensors(memory, directory / "model.safetensors",
                        encode_tensors(config, tensors, type).entries));
  ConvertOptions options;
  options.types = TRY(parse_type_plan(type == SavedType::kF32 ? "f32" : "bf16"));
  options.name = path.stem().string();
  if (vocabulary.extension() == ".gguf") {
    options.metadata = TRY(vocabulary_of(storage, vocabulary));
  } else if (!vocabulary.empty()) {
    for (const char* name : kVocabularyFiles)
      if (storage.exists(vocabulary / name))
        memory.put(directory / name, TRY(read_text(storage, vocabulary / name)));
  }
  MemoryAbove files(memory, storage);
  ThreadPool pool(1);
  const auto written =
      convert_checkpoint(files, directory, path, options, pool, [](const ConvertProgress&) {}, {});
  if (!written) return Error(written.error());
  return {};
}

Result<void> write_gguf(Storage& storage, const Path& path, const Net& net, const Path& vocabulary,
                        SavedType type) {
  return write_gguf(storage, path, net.config(), named_tensors(net), vocabulary, type);
}

}  // namespace forebay::train
