#include "train/grpo/sampler.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "train/grpo/draw.h"
#include "train/grpo/objective.h"
#include "train/grpo/policy.h"
#include "train/grpo/step_batch.h"

namespace forebay::train {
namespace {

TEST(Draw, OfACertainTokenIsNotNan) {
  std::vector<float> logits(5, 0);
  logits[3] = 1e4f;
  std::vector<double> scratch;
  for (const double u : {0.0, 0.5, 1 - 0x1p-53}) {
    const DrawnToken token = draw_token(logits, u, scratch);
    EXPECT_EQ(token.id, 3);
    EXPECT_EQ(token.log_prob, 0);
    EXPECT_FALSE(std::isnan(token.log_prob));
  }
  logits.assign(5, -1e30f);
  EXPECT_NEAR(draw_token(logits, 0.99, scratch).log_prob, -std::log(5), 1e-6);
  logits = {-3e38f, 3e38f, -3e38f};
  EXPECT_EQ(draw_token(logits, 0.3, scratch).log_prob, 0);
  EXPECT_EQ(likeliest_token(logits).id, 1);
  EXPECT_EQ(likeliest_token(std::vector<float>{1, 2, 2}).id, 1) << "the lowest id of equals";
}

TEST(Draw, FollowsTheDistribution) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.2f), -std::numeric_limits<float>::max(),
                                     std::log(0.7f)};
  std::vector<double> scratch;
  std::vector<int> counts(4);
  for (int i = 0; i < 10000; ++i) ++counts[draw_token(logits, (i + 0.5) / 10000, scratch).id];
  EXPECT_EQ(counts, (std::vector<int>{1000, 2000, 0, 7000}));
  EXPECT_NEAR(draw_token(logits, 0.15, scratch).log_prob, std::log(0.2), 1e-6);
}

class Sampling : public ::testing::Test {
 protected:
  Sampling() {
    settings_.model.toy = {
        .d_model = 32, .n_blocks = 2, .n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .d_ffn = 48};
    settings_.model.seed = 5;
    policy_ = make_policy(*storage_, settings_, *task_, 0, 1, torch::kCPU).value();
    // A new model is nearly indifferent: make its choices matter.
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor& p : policy_.net->parameters())
      if (p.dim() == 2) p.mul_(3);
    for (uint64_t i = 0; i < 20; ++i) items_.push_back(task_->item(Split::kTrain, 1, i));
  }
  Sampler sampler(int64_t n_sequences, int64_t window, int threads = 1) {
    Sampler s =
        Sampler::create(*policy_.words.storage, policy_.words.path,
                        {.threads = threads, .n_sequences = n_sequences, .context = 40, .max_window = window})
            .value();
    EXPECT_TRUE(s.refresh(*policy_.net));
    return s;
  }
  std::vector<std::vector<int32_t>> prompts(const Sampler& s) const {
    std::vector<std::vector<int32_t>> all;
    for (const Item& item : items_) all.push_back(s.encode(item.prompt));
    return all;
  }

  std::unique_ptr<Storage> storage_ = make_posix_storage();
  std::unique_ptr<Task> task_ = make_task("lists").value();
  GrpoSettings settings_;
  Policy policy_;
  std::vector<Item> items_;
};

TEST_F(Sampling, DoesNotHangOnHowManyGoTogether) {
  const DrawPlan plan{.n_answers = 3, .max_tokens = 8, .seed = 9, .first_stream = 100};
  Sampler a = sampler(60, 1024);
  const std::vector<Rollout> all = a.draw(prompts(a), plan).value();
  ASSERT_EQ(all.size(), 60u);
  for (const auto& [sequences, window, threads] :
       {std::tuple<int64_t, int64_t, int>{3, 64, 1}, {7, 30, 2}, {60, 5, 1}}) {
    Sampler b = sampler(sequences, window, threads);
    const std::vector<Rollout> other = b.draw(prompts(b), plan).value();
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(other[i].tokens, all[i].tokens) << i;
      EXPECT_EQ(other[i].log_probs, all[i].log_probs) << i;
    }
  }
  // Answers to one prompt differ; other seeds give others.
  EXPECT_NE(all[0].tokens, all[1].tokens);
  DrawPlan other_seed = plan;
  other_seed.seed = 10;
  EXPECT_NE(a.draw(prompts(a), other_seed).value()[0].tokens, all[0].tokens);
}

TEST_F(Sampling, ItsLogProbsAreTheTrainers) {
  Sampler s = sampler(64, 256);
  const auto texts = prompts(s);
  const std::vector<Rollout> rollouts = s.draw(texts, {.n_answers = 4, .max_tokens = 8, .seed = 1}).value();
  std::vector<TrainedSequence> sequences;
  std::vector<float> drawn;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    sequences.push_back({texts[i / 4], rollouts[i].tokens});
    drawn.insert(drawn.end(), rollouts[i].log_probs.begin(), rollouts[i].log_probs.end());
  }
  const torch::NoGradGuard no_gradients;
  const StepBatch batch = make_step_batch(sequences, 16, torch::kCPU);
  std::vector<torch::Tensor> parts;
  for (size_t i = 0; i < batch.micro.size(); ++i)
    parts.push_back(row_log_probs(policy_.net->logits(batch.micro[i].ids_BT), batch.rows[i]));
  const torch::Tensor difference = torch::cat(parts) - torch::tensor(drawn);
  EXPECT_LT(difference.abs().max().item<double>(), 1e-4);
  EXPECT_LT(std::abs(difference.mean().item<double>()), 1e-5);
}

TEST_F(Sampling, GivenAnswersHaveTheLogProbsOfDrawnOnes) {
  Sampler s = sampler(60, 1024);
  const std::vector<Rollout> drawn =
      s.draw(prompts(s), {.n_answers = 3, .max_tokens = 8, .seed = 9, .first_stream = 100}).value();
  Sampler other = sampler(7, 30);
  const std::vector<Rollout> given =
      other.draw(prompts(other), {.n_answers = 3, .max_tokens = 8, .given = drawn}).value();
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(given[i].tokens, drawn[i].tokens) << i;
    EXPECT_EQ(given[i].log_probs, drawn[i].log_probs) << i;
  }
}

TEST_F(Sampling, TakesNewWeights) {
  Sampler s = sampler(16, 256);
  const auto texts = prompts(s);
  const DrawPlan plan{.max_tokens = 6, .greedy = true};
  const float before = s.draw(texts, plan).value()[0].log_probs[0];
  {
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor& p : policy_.net->parameters()) p.mul_(1.01);
  }
  EXPECT_EQ(s.draw(texts, plan).value()[0].log_probs[0], before);
  ASSERT_TRUE(s.refresh(*policy_.net));
  EXPECT_NE(s.draw(texts, plan).value()[0].log_probs[0], before);
}

TEST_F(Sampling, NamesWeightsThatAreNotFinite) {
  Sampler s = sampler(16, 256);
  {
    const torch::NoGradGuard no_gradients;
    policy_.net->named_parameters()["model.layers.1.mlp.up_proj.weight"][0][0] = std::nanf("");
  }
  const Result<void> refreshed = s.refresh(*policy_.net);
  const auto drawn = refreshed ? s.draw(prompts(s), {}) : Result<std::vector<Rollout>>(refreshed.error());
  ASSERT_FALSE(drawn);
  EXPECT_NE(drawn.error().message.find("blk.1.ffn_up"), std::string::npos) << drawn.error().message;
}

TEST_F(Sampling, RefusesAPromptThatDoesNotFit) {
  Sampler s = sampler(16, 256);
  const std::vector<std::vector<int32_t>> texts = {std::vector<int32_t>(36, 3)};
  const auto drawn = s.draw(texts, {.max_tokens = 8});
  ASSERT_FALSE(drawn);
  EXPECT_NE(drawn.error().message.find("40 in all"), std::string::npos) << drawn.error().message;
}

TEST(StepBatch, PutsEveryTokenInOnePlace) {
  const std::vector<int32_t> a = {1, 2, 3}, b = {4}, answer_a = {5, 6}, answer_b = {7, 8, 9};
  const std::vector<TrainedSequence> sequences = {{a, answer_a}, {b, answer_b}, {a, answer_b}};
  const StepBatch batch = make_step_batch(sequences, 2, torch::kCPU);
  ASSERT_EQ(batch.micro.size(), 2u);
  EXPECT_EQ(batch.n_tokens, 8);
  EXPECT_EQ(batch.rows[1].first, 5);
  // Every row is the one before its token.
  for (size_t m = 0; m < 2; ++m) {
    const torch::Tensor flat = batch.micro[m].ids_BT.reshape({-1});
    EXPECT_TRUE(torch::equal(flat.index_select(0, batch.rows[m].index + 1), batch.rows[m].targets));
  }
  const torch::Tensor numbers = torch::arange(8).to(torch::kFloat32);
  EXPECT_TRUE(torch::equal(batch.flat(batch.padded(numbers)), numbers));
  EXPECT_EQ(batch.padded(numbers)[1][2].item<float>(), 4);
  EXPECT_TRUE(torch::equal(batch.spread(std::vector<double>{1, 2, 3}),
                           torch::tensor({1.f, 1.f, 2.f, 2.f, 2.f, 3.f, 3.f, 3.f})));
}

}  // namespace
}  // namespace forebay::train
