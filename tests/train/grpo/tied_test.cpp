// Models whose embedding is their output head too, cut into stages: what whole ones learn, to the bit.
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "../comm/ranks.h"
#include "support/temporary_directory.h"
#include "train/grpo/learner.h"
#include "train/grpo/tied_copies.h"
#include "train/nets/files.h"
#include "train/pipeline/local_runner.h"
#include "train/pipeline/stage_runner.h"

namespace forebay::train {
namespace {

constexpr const char* kTable = "model.embed_tokens.weight";

/// Policy, "adam.m." and "adam.v." after three steps, by name; and the norms on the way.
struct Learnt {
  NamedTensors tensors;
  std::vector<double> norms;
};

std::vector<MicroBatch> batches_of(int64_t n_vocab) {
  std::vector<MicroBatch> batches;
  for (int64_t i = 0; i < 3; ++i)
    batches.push_back({(torch::arange(2 * (5 + i)) * 7 + torch::arange(2 * (5 + i)).square() * (i + 3))
                           .remainder(n_vocab)
                           .view({2, 5 + i})});
  return batches;
}

Result<Learnt> learn(Net& net, Runner& runner) {
  const std::vector<MicroBatch> batches = batches_of(net.config().n_vocab);
  AdamW optimizer(net, {.weight_decay = 0.1});
  Learnt learnt;
  for (int64_t step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    TRY(runner.train(batches, step, [&](size_t i, const torch::Tensor& logits_BTV) {
      const torch::Tensor& ids_BT = batches[i].ids_BT;
      return torch::nn::functional::cross_entropy(
          logits_BTV.slice(1, 0, -1).reshape({-1, logits_BTV.size(2)}), ids_BT.slice(1, 1).reshape({-1}));
    }));
    learnt.norms.push_back(TRY(runner.gradient_norm()));
    clip_gradients(net, learnt.norms.back(), 0.5);
    optimizer.step(1e-2);
  }
  learnt.tensors = named_tensors(net);
  learnt.tensors.merge(optimizer.state());
  return learnt;
}

class Tied : public ::testing::TestWithParam<const char*> {
 protected:
  /// The family's vectors with the head left out.
  void SetUp() override {
    torch::set_num_threads(1);
    const auto net = load_net(*storage_, Path(FOREBAY_TEST_DATA) / "vectors" / GetParam()).value();
    ModelConfig config = net->config();
    config.tied_embeddings = true;
    NamedTensors tensors = named_tensors(*net);
    ASSERT_EQ(tensors.erase("lm_head.weight"), 1u);
    ASSERT_TRUE(save_checkpoint(*storage_, model_, config, tensors));
  }

  TemporaryDirectory temp_;
  const Path model_ = temp_ / "tied";
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};
INSTANTIATE_TEST_SUITE_P(Families, Tied, ::testing::Values("qwen2", "qwen3"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Tied, StagesLearnWhatTheWholeModelLearns) {
  const std::shared_ptr<Net> whole = load_net(*storage_, model_).value();
  ASSERT_FALSE(whole->named_parameters().contains("lm_head.weight"));
  const Learnt one = learn(*whole, *make_local_runner(*whole, {}).value()).value();
  EXPECT_GT(one.norms[0], 0.5) << "clipped";
  const int64_t n_blocks = whole->config().n_blocks;
  const std::shared_ptr<Net> again = load_net(*storage_, model_).value();
  const Learnt cut = learn(*again, *make_local_runner(*again, {.n_stages = n_blocks}).value()).value();
  std::mutex mutex;
  double most = 0;
  const auto compare = [&](const Learnt& other) {
    const std::lock_guard lock(mutex);
    for (const auto& [name, tensor] : other.tensors)
      most = std::max(most, (tensor - one.tensors.at(name)).abs().max().item<double>());
    for (size_t i = 0; i < one.norms.size(); ++i)
      most = std::max(most, std::abs(other.norms[i] - one.norms[i]));
  };
  compare(cut);
  for (int n_stages = 2; n_stages <= n_blocks; ++n_stages) {
    size_t n_tensors = 0;
    expect_all_well(run_ranks(n_stages, [&](Rank& rank) -> Result<void> {
      const auto net =
          TRY(load_net(*storage_, model_, stage_of(whole->config(), rank.comm->rank(), n_stages)));
      const auto runner = TRY(make_stage_runner(*net, *rank.comm, {}));
      const Learnt part = TRY(learn(*net, *runner));
      compare(part);
      const NamedTensors gathered = TRY(runner->gather_parameters());
      const std::lock_guard lock(mutex);
      n_tensors += without_copies(part.tensors, *net).size();
      for (const auto& [name, tensor] : gathered)
        TRY(check(torch::equal(tensor, one.tensors.at(name)), "gathered " + name));
      return check(rank.comm->rank() > 0 || gathered.size() == whole->named_parameters().size(), "gathered");
    }));
    EXPECT_EQ(n_tensors, one.tensors.size()) << "the table counts once";
  }
  fmt::print("{} tied, 1 to {} stages: max |difference| of parameters, optimiser states and norms {:g}\n",
             GetParam(), n_blocks, most);
  EXPECT_EQ(most, 0);
}

TEST(TiedCopies, AreLeftOutWhateverTheirNamesBeginWith) {
  const ModelConfig config = dense_config({.n_blocks = 2, .tied_embeddings = true});
  const auto last = make_net(config, stage_of(config, 1, 2), 1).value();
  const auto first = make_net(config, stage_of(config, 0, 2), 1).value();
  const torch::Tensor x = torch::zeros({2});
  const NamedTensors all = {{kTable, x},
                            {std::string("optimizer.adam.m.") + kTable, x},
                            {std::string("policy.") + kTable, x},
                            {"policy.other_model.embed_tokens.weight", x},
                            {"policy.model.norm.weight", x}};
  EXPECT_EQ(without_copies(all, *first).size(), all.size());
  const NamedTensors left = without_copies(all, *last);
  EXPECT_EQ(left.size(), 2u);
  EXPECT_TRUE(left.contains("policy.other_model.embed_tokens.weight"));
  EXPECT_TRUE(left.contains("policy.model.norm.weight"));
}

TEST(TiedCopies, ThatDifferAreNoticed) {
  const ModelConfig config = dense_config({.n_blocks = 2, .tied_embeddings = true});
  const int port = free_port().value();
  std::vector<Result<void>> results(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      results[static_cast<size_t>(rank)] = [&]() -> Result<void> {
        const auto team = TRY(Team::meet(world_of(rank, 2, port), {}));
        const auto net = TRY(make_net(config, stage_of(config, rank, 2), 1));
        TRY(check_copies(named_tensors(*net), *net, *team));
        const torch::NoGradGuard no_gradients;
        if (rank == 1) net->named_parameters()[kTable][3][5].add_(1e-7);
        const Result<void> checked = check_copies(named_tensors(*net), *net, *team);
        TRY(team->leave());
        return checked;
      }();
    });
  threads.clear();
  EXPECT_TRUE(results[1]) << "the leader says so";
  ASSERT_FALSE(results[0]);
  EXPECT_NE(results[0].error().message.find("model.embed_tokens.weight at rank 1 has hash"),
            std::string::npos)
      << results[0].error().message;
}

}  // namespace
}  // namespace forebay::train
