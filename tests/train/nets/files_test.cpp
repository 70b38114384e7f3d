// Models in files: what is saved is what is loaded, and what the engine runs.
#include <fstream>

#include "forebay/engine.h"

#include "core/faulty_storage.h"
#include "net_testing.h"
#include "support/memory_storage.h"
#include "train/nets/toy.h"

namespace forebay::train {
namespace {

using namespace testing;

void expect_same_parameters(const Net& a, const Net& b) {
  const auto ours = a.named_parameters(), theirs = b.named_parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& item : ours) {
    const torch::Tensor* other = theirs.find(item.key());
    ASSERT_NE(other, nullptr) << item.key();
    EXPECT_TRUE(torch::equal(item.value(), *other)) << item.key();
  }
}

TEST(Files, SavedAndLoadedToTheBit) {
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  for (const bool tied : {false, true}) {
    const ModelConfig config = dense_config({.tied_embeddings = tied});
    const auto net = must(make_net(config, whole_model(config), 11));
    must(save_net(*storage, folder / "saved", *net));
    expect_same_parameters(*must(load_net(*storage, folder / "saved")), *net);
    must(write_gguf(*storage, folder / "net.gguf", *net, {}));
    expect_same_parameters(*must(load_net(*storage, folder / "net.gguf")), *net);
  }
}

TEST(Files, AStageLoadsItsPart) {
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  const ModelConfig config = dense_config({});
  const auto net = must(make_net(config, whole_model(config), 12));
  must(save_net(*storage, folder / "saved", *net));
  must(write_gguf(*storage, folder / "net.gguf", *net, {}));
  const StageSpan second = stage_of(config, 1, 2);
  const auto part = must(make_net(config, second, 12));
  expect_same_parameters(*must(load_net(*storage, folder / "saved", second)), *part);
  expect_same_parameters(*must(load_net(*storage, folder / "net.gguf", second)), *part);
}

TEST(Files, TheEngineRunsAToyModel) {
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  for (const bool qk_norm : {false, true})
    for (const SavedType type : {SavedType::kF32, SavedType::kBF16}) {
      const ModelConfig config = dense_config({.n_vocab = 64, .qk_norm = qk_norm});
      const auto net = must(make_net(config, whole_model(config), 13));
      must(write_gguf(*storage, folder / "toy.gguf", *net, {}, type));
      const std::vector<int32_t> ids{1, 5, 9, 60, 3, 3, 17, 0, 22, 41};
      const torch::Tensor ours = must(load_net(*storage, folder / "toy.gguf"))->logits(ids_tensor(ids))[0];
      EXPECT_LE(worst_log_prob(ours, engine_logits(folder / "toy.gguf", ids)), 1e-5);

      EngineOptions options;
      options.model = folder / "toy.gguf";
      options.threads = 1;
      Engine engine = must(Engine::open(options));
      Session session = must(engine.new_session());
      must(session.sync(ids));
      const torch::Tensor last =
          torch::tensor(std::vector<float>(session.logits().begin(), session.logits().end()));
      EXPECT_LE(worst_log_prob(ours[-1], last), 1e-5);
    }
}

TEST(Files, TheVocabularyOfAnotherFileComesAlong) {
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  const ModelConfig config = dense_config({.n_vocab = 12288, .d_model = 32, .n_blocks = 1});
  const auto net = must(make_net(config, whole_model(config), 14));
  must(write_gguf(*storage, folder / "net.gguf", *net, embedded_model(), SavedType::kBF16));
  EngineOptions options;
  options.threads = 1;
  options.model = folder / "net.gguf";
  Engine engine = must(Engine::open(options));
  options.model = embedded_model();
  Engine other = must(Engine::open(options));
  EXPECT_TRUE(engine.info().has_chat_template);
  EXPECT_EQ(must(engine.tokenize("A forebay is a pool.")), must(other.tokenize("A forebay is a pool.")));
}

TEST(Files, MissingTensorsAndShapesAreNamed) {
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  const ModelConfig config = dense_config({});
  const auto net = must(make_net(config, whole_model(config), 15));
  NamedTensors tensors = named_tensors(*net);
  tensors.erase("model.layers.3.mlp.up_proj.weight");
  const Result<void> saved = save_checkpoint(*storage, folder / "saved", config, tensors);
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("model.layers.3.mlp.up_proj.weight"), std::string::npos);

  must(save_net(*storage, folder / "saved", *net));
  std::ofstream(folder / "saved" / "config.json") << "{}";
  EXPECT_FALSE(load_net(*storage, folder / "saved"));
}

TEST(Files, EveryFaultIsAnErrorAndLeavesNoFile) {
  const ModelConfig config = dense_config({.d_model = 16, .n_blocks = 1, .n_heads = 2, .d_ffn = 16});
  const auto net = must(make_net(config, whole_model(config), 16));
  for (const StorageOp op : {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kRename}) {
    int fail_at = 1;
    for (;; ++fail_at) {
      MemoryStorage memory;
      FaultyStorage faulty(memory, {.op = op, .fail_at = fail_at});
      const Result<void> written = write_gguf(faulty, "a.gguf", *net, {});
      if (faulty.n_faults() == 0) {
        ASSERT_TRUE(written);
        EXPECT_EQ(memory.n_files(), 1u);
        expect_same_parameters(*must(load_net(memory, "a.gguf")), *net);
        break;
      }
      EXPECT_FALSE(written);
      EXPECT_EQ(memory.n_files(), 0u);
    }
    EXPECT_GT(fail_at, 1);
  }
}

}  // namespace
}  // namespace forebay::train
