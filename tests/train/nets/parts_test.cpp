// The parts of qwen4exp, each against its definition and against finite differences.
#include <cmath>
#include <vector>

#include "finite_differences.h"
#include "model/layers/layers.h"
#include "net_testing.h"
#include "train/nets/gated_delta.h"
#include "train/nets/mixture.h"
#include "train/nets/ngram.h"
#include "train/nets/sparse_attention.h"
#include "train/nets/streams.h"
#include "train/nets/toy.h"

namespace forebay::train {
namespace {

using namespace testing;

DeltaInputs random_delta(int64_t T, torch::ScalarType type, int64_t seed) {
  torch::manual_seed(seed);
  const auto normed = [&](int64_t d) {
    const torch::Tensor x = torch::randn({2, 3, T, d}, torch::kFloat64);
    return x / x.norm(2, {-1}, true);
  };
  DeltaInputs in{normed(5), normed(5), torch::randn({2, 3, T, 4}, torch::kFloat64),
                 -torch::rand({2, 3, T}, torch::kFloat64) * 0.5, torch::rand({2, 3, T}, torch::kFloat64)};
  for (torch::Tensor* x : {&in.q, &in.k, &in.v, &in.log_decay, &in.beta}) *x = x->to(type).requires_grad_();
  return in;
}

TEST(GatedDelta, ChunksAreTheRecurrence) {
  for (const int64_t T : {1, 2, 7, 64, 65, 130}) {
    const DeltaInputs in = random_delta(T, torch::kFloat64, T);
    const torch::Tensor wanted = gated_delta_by_token(in);
    for (const int64_t chunk : {1, 4, 64})
      EXPECT_LE((gated_delta_by_chunk(in, chunk) - wanted).abs().max().item<double>(), 1e-12)
          << T << " " << chunk;
    const DeltaInputs single = random_delta(T, torch::kFloat32, T);
    EXPECT_LE((gated_delta_by_chunk(single) - wanted).abs().max().item<double>(), 2e-5) << T;
  }
}

TEST(GatedDelta, GradientsAreThoseOfFiniteDifferences) {
  const DeltaInputs in = random_delta(11, torch::kFloat64, 3);
  const torch::Tensor probe = torch::randn({2, 3, 11, 4}, torch::kFloat64);
  const std::vector<torch::Tensor> leaves{in.q, in.k, in.v, in.log_decay, in.beta};
  expect_gradient([&] { return (gated_delta_by_token(in) * probe).sum(); }, leaves);
  expect_gradient([&] { return (gated_delta_by_chunk(in, 4) * probe).sum(); }, leaves);
}

TEST(Streams, GradientsAreThoseOfFiniteDifferences) {
  torch::manual_seed(5);
  const int64_t S = 4, D = 3, R = 2;
  StreamWeights w{random_leaf({S * D}, 0.1), random_leaf({R, S * D}), random_leaf({S * D, R}),
                  random_leaf({S, S * D})};
  torch::Tensor x = random_leaf({2, 3, S * D}), y = random_leaf({2, 3, D});
  const torch::Tensor probe = torch::randn({2, 3, S * D}, torch::kFloat64);
  expect_gradient(
      [&] {
        const StreamRead read = read_streams(w, x, S, 1e-6, Precision::kF32);
        return (write_streams(x, read.weight, y * read.x) * probe).sum();
      },
      {w.norm, w.down, w.up, w.inject, x, y});
}

TEST(Streams, WithoutWeightsEveryStreamIsWrittenAlike) {
  const int64_t S = 4, D = 3;
  StreamWeights w{torch::zeros({S * D}), torch::zeros({2, S * D}), torch::zeros({S * D, 2}),
                  torch::zeros({S, S * D})};
  const torch::Tensor x = torch::randn({1, 2, S * D}), y = torch::randn({1, 2, D});
  const StreamRead read = read_streams(w, x, S, 1e-6, Precision::kF32);
  EXPECT_TRUE(torch::equal(read.weight, torch::ones({1, 2, S})));
  EXPECT_TRUE(torch::allclose(write_streams(x, read.weight, y), x + y.repeat({1, 1, S})));
}

TEST(Mixture, BothWaysAreTheSumOverChoices) {
  torch::manual_seed(6);
  const int64_t N = 19, D = 6, E = 5, F = 4, n_used = 2;
  MixtureWeights w;
  w.router = torch::randn({E, D});
  w.router[4].fill_(0);
  w.router[3].fill_(-10);  // hardly used
  w.gate_up = torch::randn({E, 2 * F, D}).requires_grad_();
  w.down = torch::randn({E, D, F}).requires_grad_();
  torch::Tensor x = torch::randn({N, D}).requires_grad_();
  const Routing routing = route(w.router, x, n_used);
  EXPECT_TRUE(torch::allclose(routing.weights.sum(-1), torch::ones({N})));

  std::vector<torch::Tensor> rows;
  for (int64_t n = 0; n < N; ++n) {
    torch::Tensor y = torch::zeros({D});
    for (int64_t k = 0; k < n_used; ++k) {
      const auto e = routing.experts[n][k].item<int64_t>();
      const torch::Tensor both = torch::mv(w.gate_up[e], x[n]);
      y = y + routing.weights[n][k] *
                  torch::mv(w.down[e], torch::silu(both.narrow(0, 0, F)) * both.narrow(0, F, F));
    }
    rows.push_back(y);
  }
  const torch::Tensor wanted = torch::stack(rows), probe = torch::randn({N, D});
  const std::vector<torch::Tensor> leaves{x, w.gate_up, w.down};
  const auto wanted_gradients = torch::autograd::grad({(wanted * probe).sum()}, leaves, {}, true);
  for (const auto& way : {experts_one_by_one, experts_side_by_side}) {
    const torch::Tensor y = way(w, routing, x, Precision::kF32);
    EXPECT_TRUE(torch::allclose(y, wanted, 1e-5, 1e-5));
    const auto gradients = torch::autograd::grad({(y * probe).sum()}, leaves, {}, true);
    for (size_t i = 0; i < leaves.size(); ++i)
      EXPECT_TRUE(torch::allclose(gradients[i], wanted_gradients[i], 1e-4, 1e-5)) << i;
  }
}

TEST(Mixture, BalanceIsOneWhenAllExpertsAreUsedAlike) {
  Routing even{torch::tensor({0, 1, 2, 3}, torch::kInt64).view({2, 2}), {}, torch::full({2, 4}, 0.25)};
  EXPECT_DOUBLE_EQ(balance_loss(even).item<double>(), 1.0);
  Routing one{torch::zeros({4, 1}, torch::kInt64), {}, torch::tensor({1.0f, 0.0f}).repeat({4, 1})};
  EXPECT_DOUBLE_EQ(balance_loss(one).item<double>(), 2.0);
}

TEST(Ngram, RowsAreThoseOfTheEngine) {
  const ModelConfig config = hyper_config({.n_vocab = 40, .eos = 7});
  const std::vector<int32_t> ids{3, 7, 5, 7, 7, 9, 12, 39, 0, 0, 7, 1};
  const torch::Tensor rows = ngram_rows(config.ngram, ids_tensor(ids))[0];
  for (int64_t t = 0; t < static_cast<int64_t>(ids.size()); ++t) {
    std::vector<int32_t> history(ids.rend() - t - 1, ids.rend());
    std::vector<int64_t> wanted(static_cast<size_t>(config.ngram.n_heads()));
    forebay::ngram_row_ids(config.ngram, history, wanted.data());
    for (size_t h = 0; h < wanted.size(); ++h)
      EXPECT_EQ(rows[t][static_cast<int64_t>(h)].item<int64_t>(), wanted[h]) << t << " " << h;
  }
}

class IndexerTest : public ::testing::Test {
 protected:
  IndexerTest() {
    ParameterMaker maker(root_, 4);
    weights_ = make_sparse_attention_weights(maker, "a", config_);
  }
  Rotations rotations(int64_t T) const {
    const AttentionConfig& a = config_.attention;
    return {make_rotation(T, 1, a.n_rot, a.rope_theta, torch::kCPU),
            make_rotation(T / 4, 4, a.n_rot, a.rope_theta, torch::kCPU)};
  }

  const ModelConfig config_ = hyper_config({.index_budget = 8});
  torch::nn::Module root_;
  SparseAttentionWeights weights_;
};

TEST_F(IndexerTest, KeepsTheBestCompleteBlocksAndTheTail) {
  const int64_t T = 23;
  torch::manual_seed(7);
  const BlockChoice choice =
      choose_blocks(weights_, config_, torch::randn({2, T, config_.d_model}), rotations(T));
  const torch::Tensor hidden = hidden_keys(choice, 4, T);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < T; ++t) {
      const int64_t n_complete = (t + 1) / 4;
      EXPECT_EQ(choice.chosen[b][t].sum().item<int64_t>(), std::min<int64_t>(2, n_complete));
      double worst_kept = 1e30, best_dropped = -1;
      for (int64_t block = 0; block < n_complete; ++block) {
        const double score = choice.score[b][t][block].item<double>();
        if (choice.chosen[b][t][block].item<bool>())
          worst_kept = std::min(worst_kept, score);
        else
          best_dropped = std::max(best_dropped, score);
      }
      EXPECT_GE(worst_kept, best_dropped);
      for (int64_t s = 0; s <= t; ++s) {
        const bool is_tail = s / 4 >= n_complete;
        EXPECT_EQ(hidden[b][0][t][s].item<bool>(), !is_tail && !choice.chosen[b][t][s / 4].item<bool>());
      }
    }
}

TEST_F(IndexerTest, ItsLossTeachesOnlyTheIndexer) {
  const int64_t T = 19;
  torch::manual_seed(8);
  torch::Tensor x = torch::randn({2, T, config_.d_model}).requires_grad_();
  const SparseAttention out =
      sparse_attention_layer(weights_, config_, 4, false, true, x, rotations(T), Precision::kF32);
  ASSERT_TRUE(out.indexer_loss.defined());
  EXPECT_GT(out.indexer_loss.item<double>(), 0);
  const auto gradients =
      torch::autograd::grad({out.indexer_loss}, {weights_.index_qk, weights_.q, weights_.k, x}, {},
                            /*retain_graph=*/true, false, /*allow_unused=*/true);
  EXPECT_TRUE(gradients[0].defined() && gradients[0].abs().max().item<double>() > 0);
  for (size_t i = 1; i < 4; ++i) EXPECT_FALSE(gradients[i].defined()) << i;

  // Following the gradient brings the indexer to the attention.
  torch::optim::Adam adam({weights_.index_qk, weights_.index_q_norm, weights_.index_k_norm},
                          torch::optim::AdamOptions(1e-2));
  const auto loss = [&] {
    return sparse_attention_layer(weights_, config_, 4, true, true, x.detach(), rotations(T), Precision::kF32)
        .indexer_loss;
  };
  const double before = loss().item<double>();
  for (int step = 0; step < 40; ++step) {
    adam.zero_grad();
    loss().backward();
    adam.step();
  }
  EXPECT_LT(loss().item<double>(), 0.8 * before);
}

TEST_F(IndexerTest, AShortSequenceIsDense) {
  torch::manual_seed(9);
  const torch::Tensor x = torch::randn({1, 11, config_.d_model});
  const auto run = [&](bool dense) {
    return sparse_attention_layer(weights_, config_, 4, dense, false, x, rotations(11), Precision::kF32).y;
  };
  EXPECT_TRUE(torch::equal(run(true), run(false)));
}

}  // namespace
}  // namespace forebay::train
