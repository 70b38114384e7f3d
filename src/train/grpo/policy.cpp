#include "train/grpo/policy.h"

#include <fmt/format.h>

#include "core/memory_storage.h"
#include "gguf/gguf.h"
#include "train/nets/files.h"
#include "train/tasks/char_vocabulary.h"

namespace forebay::train {
namespace {

Result<void> write_vocabulary(Storage& storage, const Path& path, const CharVocabulary& characters) {
  GgufWriter writer = TRY(GgufWriter::create(storage, path));
  for (auto& [key, value] : characters.gguf_metadata()) writer.set(key, value);
  TRY(writer.write_headers());
  return writer.finish();
}

}  // namespace

void copy_parameters(const Net& from, Net& to) {
  const torch::NoGradGuard no_gradients;
  const auto source = from.named_parameters();
  for (auto& item : to.named_parameters()) item.value().copy_(source[item.key()]);
}

Result<Policy> make_policy(Storage& storage, const GrpoSettings& settings, const Task& task) {
  Policy policy;
  // A toy's words are in memory; so are a directory's, as the GGUF file that is made of it.
  auto memory = std::make_shared<MemoryStorage>();
  policy.vocabulary_storage = memory;
  policy.vocabulary = "words.gguf";
  const auto seed = static_cast<uint64_t>(settings.model.seed);
  if (settings.model.path.empty()) {
    if (task.alphabet().empty())
      return Error{Code::kInvalidArgument,
                   fmt::format("task.name is '{}': its texts need a model with a vocabulary, set model.path",
                               task.name())};
    const CharVocabulary characters(task.alphabet());
    TRY(write_vocabulary(*memory, policy.vocabulary, characters));
    DenseSizes sizes = settings.model.toy;
    sizes.n_vocab = static_cast<int>(characters.n_tokens());
    sizes.context = std::max<int64_t>(sizes.context, settings.sampler.context);
    const ModelConfig config = dense_config(sizes);
    policy.net = TRY(make_net(config, whole_model(config), seed));
  } else {
    policy.net = TRY(load_net(storage, settings.model.path));
    if (Path(settings.model.path).extension() == ".gguf") {
      policy.vocabulary_storage = std::shared_ptr<Storage>(&storage, [](Storage*) {});
      policy.vocabulary = settings.model.path;
    } else {
      return Error{Code::kUnsupported,
                   fmt::format("model.path is '{}': a GGUF file is wanted (forebay convert makes one)",
                               settings.model.path)};
    }
  }
  const ModelConfig& config = policy.net->config();
  policy.reference = TRY(make_net(config, whole_model(config), seed));
  const torch::Device device(settings.run.device);
  for (Net* net : {policy.net.get(), policy.reference.get()}) {
    net->to(device);
    net->set_precision(settings.run.bf16 ? Precision::kBF16 : Precision::kF32);
  }
  copy_parameters(*policy.net, *policy.reference);
  return policy;
}

}  // namespace forebay::train
