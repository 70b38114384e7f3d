#include "train/grpo/policy.h"

#include <fmt/format.h>

#include "convert/checkpoint_config.h"
#include "convert/tokenizer_metadata.h"
#include "core/memory_storage.h"
#include "gguf/gguf.h"
#include "train/nets/files.h"
#include "train/tasks/char_vocabulary.h"

namespace forebay::train {
namespace {

const Path kWordsFile = "words.gguf";

template <typename Entries>
Result<Words> words_file(const Entries& entries) {
  auto memory = std::make_shared<MemoryStorage>();
  GgufWriter writer = TRY(GgufWriter::create(*memory, kWordsFile));
  for (const auto& [key, value] : entries) writer.set(key, value);
  TRY(writer.write_headers());
  TRY(writer.finish());
  return Words{memory, kWordsFile};
}

Words words_in(Storage& storage, const Path& gguf) {
  return {std::shared_ptr<Storage>(&storage, [](Storage*) {}), gguf};
}

/// Where a model's weights are, and its words.
struct ModelPlace {
  Path weights;
  Words words;
};

/// A directory with tokenizer.json: its tokenizer as a GGUF file has it.
Result<Words> words_in_directory(Storage& storage, const Path& directory) {
  const convert::JsonObject json = TRY(convert::JsonObject::read(storage, directory / "config.json"));
  const convert::CheckpointConfig config = TRY(convert::read_checkpoint_config(json));
  GgufMetadata metadata;
  metadata.set("general.architecture", GgufValue::string("words"));
  std::vector<std::string> notes;
  TRY(convert::add_text_metadata(storage, directory, config, metadata, notes));
  return words_file(metadata.entries());
}

Result<ModelPlace> find_model(Storage& storage, const GrpoSettings& settings) {
  const Path path = settings.model.path;
  ModelPlace place{path, {}};
  Path gguf;  // with the words
  if (path.extension() == ".gguf") {
    if (!storage.exists(path))
      return Error{Code::kNotFound, fmt::format("model.path is '{}': no such file", path.string())};
    gguf = path;
  } else if (storage.exists(path / "model" / "config.json")) {
    // What a pretraining or a fine-tuning left behind.
    place.weights = path / "model";
    gguf = path / "model.gguf";
  } else if (storage.exists(path / "config.json")) {
    gguf = path.parent_path() / "model.gguf";
  } else {
    return Error{Code::kNotFound,
                 fmt::format("model.path is '{}': wanted a GGUF file, a directory with config.json, or one "
                             "that train pretrain or sft has finished",
                             path.string())};
  }
  const std::string& tokenizer = settings.model.tokenizer;
  if (!tokenizer.empty()) gguf = tokenizer;
  if (gguf.extension() == ".gguf" && storage.exists(gguf)) {
    place.words = words_in(storage, gguf);
    return place;
  }
  const Path directory = tokenizer.empty() ? place.weights : Path(tokenizer);
  if (!storage.exists(directory / "tokenizer.json"))
    return Error{Code::kNotFound,
                 fmt::format("model.path is '{}': no tokenizer there (neither {} nor tokenizer.json): set "
                             "model.tokenizer to a GGUF file or a directory that has one",
                             path.string(), gguf.string())};
  place.words = TRY(words_in_directory(storage, directory));
  return place;
}

Result<void> make_toy(const GrpoSettings& settings, const Task& task, int64_t stage, int64_t n_stages,
                      Policy& policy) {
  if (task.alphabet().empty())
    return Error{Code::kInvalidArgument,
                 fmt::format("task.name is '{}': its texts need a model with a vocabulary, set model.path",
                             task.name())};
  const CharVocabulary characters(task.alphabet());
  policy.words = TRY(words_file(characters.gguf_metadata()));
  DenseSizes sizes = settings.model.toy;
  sizes.n_vocab = static_cast<int>(characters.n_tokens());
  sizes.context = std::max<int64_t>(sizes.context, settings.sampler.context);
  const ModelConfig config = dense_config(sizes);
  if (n_stages > config.n_blocks)
    return Error{
        Code::kInvalidArgument,
        fmt::format("model.blocks is {} with {} stages: one block each at least", config.n_blocks, n_stages)};
  policy.net =
      TRY(make_net(config, stage_of(config, stage, n_stages), static_cast<uint64_t>(settings.model.seed)));
  return {};
}

}  // namespace

void copy_parameters(const Net& from, Net& to) {
  const torch::NoGradGuard no_gradients;
  const auto source = from.named_parameters();
  for (auto& item : to.named_parameters()) item.value().copy_(source[item.key()]);
}

Result<Policy> make_policy(Storage& storage, const GrpoSettings& settings, const Task& task, int64_t stage,
                           int64_t n_stages, torch::Device device) {
  Policy policy;
  if (settings.model.path.empty()) {
    TRY(make_toy(settings, task, stage, n_stages, policy));
  } else {
    const ModelPlace place = TRY(find_model(storage, settings));
    const ModelConfig config = TRY(read_model_config(storage, place.weights));
    if (n_stages > config.n_blocks)
      return Error{Code::kInvalidArgument, fmt::format("{}: {} blocks for {} stages: one each at least",
                                                       place.weights.string(), config.n_blocks, n_stages)};
    policy.net = TRY(load_net(storage, place.weights, stage_of(config, stage, n_stages)));
    policy.words = place.words;
  }
  policy.reference = TRY(make_net(policy.net->config(), policy.net->span(), std::nullopt));
  for (Net* net : {policy.net.get(), policy.reference.get()}) {
    net->to(device);
    net->set_precision(settings.run.bf16 ? Precision::kBF16 : Precision::kF32);
  }
  copy_parameters(*policy.net, *policy.reference);
  return policy;
}

}  // namespace forebay::train
