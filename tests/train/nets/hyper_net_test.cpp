// qwen4exp: the same log-probs as the engine and as the published implementation, the draft head included.
#include <filesystem>

#include "model/model.h"
#include "net_testing.h"
#include "train/nets/toy.h"

namespace forebay::train {
namespace {

using namespace testing;

const std::filesystem::path kPebble = std::filesystem::path(FOREBAY_SOURCE_DIR) / "../shared/models/pebble";

/// The engine's logits and the draft head's, of one sequence.
struct EngineRows {
  torch::Tensor logits, draft;
};
EngineRows engine_rows(const std::filesystem::path& gguf, const std::vector<int32_t>& ids) {
  LoadedModel model(gguf, 1, forebay::best_isa(), {.max_window = 512});
  SequenceState state = model.state(static_cast<int64_t>(ids.size()) + 1);
  const Span span{&state, ids, LogitRows::kAll};
  const ForwardOutput out = must(model.model->forward({&span, 1}));
  const auto tensor = [](TensorView<const float> view) {
    return torch::tensor(std::vector<float>(view.data, view.data + view.rows * view.cols))
        .view({view.rows, view.cols});
  };
  EngineRows rows;
  rows.logits = tensor(out.logits);
  const torch::Tensor hidden = tensor(out.hidden);
  if (!model.model->has_mtp()) return rows;
  const std::vector<int32_t> next(ids.begin() + 1, ids.end());
  const TensorView<const float> before(hidden.data_ptr<float>(), hidden.size(0) - 1, hidden.size(1));
  rows.draft = tensor(must(model.model->draft(state, before, next, LogitRows::kAll)).logits);
  return rows;
}

std::vector<int32_t> prompt(const char* name) {
  return forebay::testing::Expected(kPebble / "expected.safetensors").ints(std::string(name) + ".ids");
}

TEST(HyperNet, AgreesWithTheEngineOnTheVectors) {
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const std::vector<int32_t> ids = expected_of("qwen4exp").ints("ids");
  const std::filesystem::path gguf = converted_vectors("qwen4exp");
  const torch::Tensor ours = must(load_net(*storage, gguf))->logits(ids_tensor(ids))[0];
  const double worst = worst_log_prob(ours, engine_logits(gguf, ids));
  std::printf("qwen4exp: max |log-prob difference| to the engine %.2e\n", worst);
  EXPECT_LE(worst, 1e-4);
  const auto expected = expected_of("qwen4exp");
  const int64_t n = static_cast<int64_t>(ids.size()) - 1;
  const torch::Tensor published = torch::tensor(expected.floats("target_logprob"));
  const torch::Tensor targets = ids_tensor(ids)[0].narrow(0, 1, n);
  const torch::Tensor from_checkpoint =
      must(load_net(*storage, vectors_of("qwen4exp")))->logits(ids_tensor(ids))[0].narrow(0, 0, n);
  EXPECT_LE((log_probs(from_checkpoint, targets) - published).abs().max().item<double>(), 1e-4);
}

TEST(HyperNet, AgreesWithTheEngineOnPebble) {
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const auto net = must(load_net(*storage, embedded_model()));
  // Long enough that the indexer chooses: 400 tokens, 256 are kept.
  std::vector<int32_t> ids;
  for (int i = 0; i < 400; ++i) ids.push_back((i * i * 31 + i * 17) % 12000 + 100);
  const EngineRows engine = engine_rows(embedded_model(), ids);
  const torch::Tensor x = net->trunk(ids_tensor(ids));
  const double trunk = worst_log_prob(net->head(x)[0], engine.logits);
  ASSERT_TRUE(engine.draft.defined());
  const double draft = worst_log_prob(net->draft_logits(x, ids_tensor(ids))[0], engine.draft);
  std::printf("pebble: max |log-prob difference| to the engine %.2e, draft head %.2e\n", trunk, draft);
  EXPECT_LE(trunk, 2e-3);
  EXPECT_LE(draft, 2e-3);
}

TEST(HyperNet, AgreesWithThePublishedPebble) {
  if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << kPebble << " is not here";
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const auto net = must(load_net(*storage, kPebble));
  const forebay::testing::Expected expected(kPebble / "expected.safetensors");
  for (const char* name : {"arith", "define", "tool", "japanese"}) {
    const std::vector<int32_t> ids = prompt(name);
    const torch::Tensor x = net->trunk(ids_tensor(ids));
    const double trunk = worst_log_prob(net->head(x)[0][-1],
                                        torch::tensor(expected.floats(std::string(name) + ".last_logits")));
    const double draft =
        worst_log_prob(net->draft_logits(x, ids_tensor(ids))[0][-1],
                       torch::tensor(expected.floats(std::string(name) + ".mtp_last_logits")));
    std::printf("%s: max |log-prob difference| to the published one %.2e, draft head %.2e\n", name, trunk,
                draft);
    EXPECT_LE(trunk, 2e-3);
    // The published head chose blocks too; here, as in the engine, it sees all keys. Up to the budget that is
    // the same.
    if (static_cast<int64_t>(ids.size()) <= net->config().indexer.top_k_cells) {
      EXPECT_LE(draft, 2e-3);
    }
  }
}

TEST(HyperNet, SavedAndLoadedToTheBit) {
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  const ModelConfig config = hyper_config({});
  const auto net = must(make_net(config, whole_model(config), 21));
  must(save_net(*storage, folder / "saved", *net));
  const auto again = must(load_net(*storage, folder / "saved"));
  must(write_gguf(*storage, folder / "net.gguf", *net, {}));
  const auto through_gguf = must(load_net(*storage, folder / "net.gguf"));
  for (const auto& item : net->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), again->named_parameters()[item.key()])) << item.key();
    // In a GGUF file norms are around one and decays are no logarithms: the last bits of small numbers go.
    EXPECT_TRUE(torch::allclose(item.value(), through_gguf->named_parameters()[item.key()], 1e-5, 1e-7))
        << item.key();
  }
  EXPECT_EQ(again->config().ngram.multipliers, config.ngram.multipliers);
}

TEST(HyperNet, TheEngineRunsAToyModel) {
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const TemporaryDirectory folder;
  const ModelConfig config = hyper_config({.index_budget = 16});
  const auto net = must(make_net(config, whole_model(config), 22));
  must(write_gguf(*storage, folder / "toy.gguf", *net, {}));
  std::vector<int32_t> ids;
  for (int i = 0; i < 50; ++i) ids.push_back((i * 13 + i * i) % 64);
  const EngineRows engine = engine_rows(folder / "toy.gguf", ids);
  const torch::Tensor x = net->trunk(ids_tensor(ids));
  EXPECT_LE(worst_log_prob(net->head(x)[0], engine.logits), 1e-4);
  EXPECT_LE(worst_log_prob(net->draft_logits(x, ids_tensor(ids))[0], engine.draft), 1e-4);
}

TEST(HyperNet, StagesAreTheWhole) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig config = hyper_config({});
  const torch::Tensor ids = some_ids(2, 30, config.n_vocab, 1);
  const torch::Tensor whole = must(make_net(config, whole_model(config), 5))->logits(ids);
  torch::Tensor x;
  for (int64_t s = 0; s < 3; ++s) {
    const auto stage = must(make_net(config, stage_of(config, s, 3), 5));
    if (s == 0) x = stage->embed(ids);
    for (int64_t i = stage->span().first_block; i < stage->span().last_block; ++i)
      x = stage->block(i, x, ids);
    if (s == 2) x = stage->head(x);
  }
  EXPECT_TRUE(torch::equal(x, whole));
}

TEST(HyperNet, StagesHoldEveryParameterOnce) {
  const ModelConfig config = hyper_config({});
  const NamedTensors whole = named_tensors(*must(make_net(config, whole_model(config), 5)));
  ASSERT_TRUE(whole.contains("mtp.fc_hidden.weight"));
  size_t n_held = 0;
  for (int64_t s = 0; s < 3; ++s) {
    const auto stage = must(make_net(config, stage_of(config, s, 3), 5));
    for (const auto& [name, tensor] : named_tensors(*stage)) {
      EXPECT_TRUE(torch::equal(tensor, whole.at(name))) << name;
      ++n_held;
    }
    // A draft needs the embedding too.
    const torch::Tensor x = torch::zeros({1, 5, stage->boundary_width()});
    EXPECT_FALSE(stage->draft_logits(x, some_ids(1, 5, config.n_vocab, 1)).defined());
  }
  EXPECT_EQ(n_held, whole.size());
}

TEST(HyperNet, PaddingOnTheRightChangesNoBit) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig config = hyper_config({.index_budget = 8});
  const auto net = must(make_net(config, whole_model(config), 6));
  const torch::Tensor ids = some_ids(3, 40, config.n_vocab, 2);
  const torch::Tensor logits = net->logits(ids).narrow(1, 0, 29);
  torch::Tensor padded = ids.clone();
  padded.narrow(1, 29, 11).fill_(0);
  EXPECT_TRUE(torch::equal(net->logits(padded).narrow(1, 0, 29), logits));
}

TEST(HyperNet, EveryParameterLearns) {
  const ModelConfig config = hyper_config({.index_budget = 8});
  const auto net = must(make_net(config, whole_model(config), 7));
  net->set_auxiliary_weights({.balance = 0.01, .indexer = 1});
  const torch::Tensor ids = some_ids(2, 30, config.n_vocab, 3);
  const torch::Tensor x = net->trunk(ids);
  const torch::Tensor draft = net->draft_logits(x, ids);
  torch::Tensor loss =
      net->head(x).log_softmax(-1).select(-1, 3).sum() + draft.log_softmax(-1).select(-1, 5).sum();
  const torch::Tensor auxiliary = net->take_auxiliary_loss();
  ASSERT_TRUE(auxiliary.defined());
  EXPECT_FALSE(net->take_auxiliary_loss().defined());
  (loss + auxiliary).backward();
  for (const auto& item : net->named_parameters()) {
    if (item.key().starts_with("mtp.") && item.key().find("indexer") != std::string::npos)
      continue;  // dense there
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0) << item.key();
  }
}

}  // namespace
}  // namespace forebay::train
