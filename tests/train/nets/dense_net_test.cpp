// qwen2 and qwen3: the same log-probs as the engine and as the published implementation.
#include <cstring>

#include "net_testing.h"
#include "train/nets/parameters.h"
#include "train/nets/toy.h"

namespace forebay::train {
namespace {

using namespace testing;

class DenseFamily : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, DenseFamily, ::testing::Values("qwen2", "qwen3"));

TEST_P(DenseFamily, AgreesWithTheEngine) {
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const std::vector<int32_t> ids = expected_of(GetParam()).ints("ids");
  const std::filesystem::path gguf = converted_vectors(GetParam());
  const torch::Tensor ours = must(load_net(*storage, gguf))->logits(ids_tensor(ids))[0];
  const double worst = worst_log_prob(ours, engine_logits(gguf, ids));
  RecordProperty("worst_log_prob", std::to_string(worst));
  std::printf("%s: max |log-prob difference| to the engine %.2e\n", GetParam(), worst);
  EXPECT_LE(worst, 1e-5);
}

TEST_P(DenseFamily, AgreesWithThePublishedImplementation) {
  const torch::NoGradGuard no_gradients;
  const auto storage = make_posix_storage();
  const auto expected = expected_of(GetParam());
  const torch::Tensor ids = ids_tensor(expected.ints("ids"));
  const torch::Tensor logits = must(load_net(*storage, vectors_of(GetParam())))->logits(ids)[0];
  const torch::Tensor targets = ids[0].narrow(0, 1, ids.size(1) - 1);
  const torch::Tensor ours = log_probs(logits.narrow(0, 0, ids.size(1) - 1), targets);
  EXPECT_LE((ours - torch::tensor(expected.floats("target_logprob"))).abs().max().item<double>(), 2e-5);
}

TEST_P(DenseFamily, StagesAreTheWhole) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig config = dense_config({.qk_norm = std::string(GetParam()) == "qwen3"});
  const torch::Tensor ids = some_ids(3, 12, config.n_vocab, 1);
  const torch::Tensor whole = must(make_net(config, whole_model(config), 5))->logits(ids);
  for (const int64_t n_stages : {2, 3, 4}) {
    torch::Tensor x;
    for (int64_t s = 0; s < n_stages; ++s) {
      const auto stage = must(make_net(config, stage_of(config, s, n_stages), 5));
      if (s == 0) x = stage->embed(ids);
      for (int64_t i = stage->span().first_block; i < stage->span().last_block; ++i)
        x = stage->block(i, x, ids);
      if (s == n_stages - 1) x = stage->head(x);
    }
    EXPECT_TRUE(torch::equal(x, whole)) << n_stages << " stages";
  }
}

TEST_P(DenseFamily, PaddingOnTheRightChangesNoBit) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig config = dense_config({.qk_norm = std::string(GetParam()) == "qwen3"});
  const auto net = must(make_net(config, whole_model(config), 6));
  const torch::Tensor ids = some_ids(4, 16, config.n_vocab, 2);
  const torch::Tensor logits = net->logits(ids).narrow(1, 0, 11);
  torch::Tensor padded = ids.clone();
  padded.narrow(1, 11, 5).fill_(0);
  EXPECT_TRUE(torch::equal(net->logits(padded).narrow(1, 0, 11), logits));
}

TEST(DenseNet, InitialisationIsAFunctionOfSeedAndName) {
  const ModelConfig config = dense_config({});
  const auto net = must(make_net(config, whole_model(config), 9));
  const auto name = "model.layers.2.mlp.up_proj.weight";
  const torch::Tensor up = net->named_parameters()[name];
  const std::vector<float> values = initial_values(9, name, up.numel(), Init::matrix(config.d_model));
  EXPECT_EQ(std::memcmp(values.data(), up.data_ptr<float>(), values.size() * sizeof(float)), 0);
  EXPECT_NEAR(up.std().item<double>(), std::sqrt(0.4 / 64), 2e-3);
  EXPECT_NEAR(up.mean().item<double>(), 0, 2e-3);
  EXPECT_FALSE(torch::equal(up, must(make_net(config, whole_model(config), 10))->named_parameters()[name]));
}

TEST(DenseNet, ATiedEmbeddingIsInBothEndStages) {
  const ModelConfig config = dense_config({.n_blocks = 3, .tied_embeddings = true});
  const auto whole = must(make_net(config, whole_model(config), 1));
  const std::string name = whole->tied_parameter();
  const torch::Tensor table = whole->named_parameters()[name];
  const torch::Tensor ids = some_ids(2, 9, config.n_vocab, 4);
  torch::Tensor x;
  for (int64_t stage = 0; stage < 3; ++stage) {
    const auto net = must(make_net(config, stage_of(config, stage, 3), 1));
    const torch::Tensor* const own = net->named_parameters().find(name);
    ASSERT_EQ(own != nullptr, stage != 1);
    if (own != nullptr) {
      EXPECT_TRUE(torch::equal(*own, table));
    }
    EXPECT_EQ(net->is_copy(name), stage == 2);
    EXPECT_FALSE(net->is_copy("model.norm.weight"));
    if (stage == 0) x = net->embed(ids);
    for (int64_t i = net->span().first_block; i < net->span().last_block; ++i) x = net->block(i, x, ids);
    if (stage == 2) x = net->head(x);
  }
  EXPECT_TRUE(torch::equal(x, whole->logits(ids)));
}

TEST(DenseNet, OverfitsALine) {
  const ModelConfig config = dense_config({.n_vocab = 32, .d_model = 32, .n_blocks = 2, .d_ffn = 64});
  const auto net = must(make_net(config, whole_model(config), 3));
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(3e-3));
  const torch::Tensor ids = some_ids(1, 24, config.n_vocab, 4);
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const torch::Tensor logits = net->logits(ids).narrow(1, 0, 23);
    const torch::Tensor nll = -log_probs(logits, ids.narrow(1, 1, 23)).mean();
    nll.backward();
    optimizer.step();
    loss = nll.item<double>();
  }
  EXPECT_LT(loss, 0.3);
}

TEST(RmsNorm, HasTheGradientOfItsFormula) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat64);
  torch::manual_seed(1);
  for (const bool grouped : {false, true}) {
    torch::Tensor x = torch::randn({2, 3, 4, 5}, options).requires_grad_();
    torch::Tensor w = (grouped ? torch::randn({4, 5}, options) : torch::randn({5}, options)).requires_grad_();
    const torch::Tensor probe = torch::randn({2, 3, 4, 5}, options);
    const auto plain = [&] { return x * (x.pow(2).mean(-1, true) + 1e-3).rsqrt() * w; };
    EXPECT_TRUE(torch::allclose(rms_norm(x, w, 1e-3), plain(), 1e-12, 1e-12));
    const auto ours = torch::autograd::grad({(rms_norm(x, w, 1e-3) * probe).sum()}, {x, w});
    const auto wanted = torch::autograd::grad({(plain() * probe).sum()}, {x, w});
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::allclose(ours[i], wanted[i], 1e-10, 1e-10));
  }
}

}  // namespace
}  // namespace forebay::train
