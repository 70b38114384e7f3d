// Log-probs and the view that they were made under: passes of another step, of another codec's state or
// without codec are refused before they become a ratio.
#include "train/grpo/views.h"

#include <gtest/gtest.h>

#include "train/nets/net.h"
#include "train/nets/toy.h"

namespace forebay::train {
namespace {

class ViewsOf : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::set_num_threads(1);
    settings_.pipeline.stages = 2;
    settings_.wire.codec = {.name = "frlr", .rank = 8, .k_residual = 4};
    settings_.wire.refresh_every = 1;
    const ModelConfig config = dense_config({.n_vocab = 16, .d_model = 64, .n_blocks = 2, .d_ffn = 64});
    for (std::shared_ptr<Net>* net : {&policy_, &reference_})
      *net = make_net(config, whole_model(config), 1).value();
    views_ = Views::create(*policy_, *reference_, settings_, team_).value();
    const std::vector<TrainedSequence> sequences = {{prompt_, answer_}, {answer_, prompt_}};
    batch_ = make_step_batch(sequences, 1, torch::kCPU);
  }
  Result<void> train(int64_t step, const LogProbs& old, View view = View::kCodec) {
    return views_->train(
        batch_, step, old, [](size_t, const torch::Tensor& log_probs) { return -log_probs.sum(); }, view);
  }
  void expect_refused(const Result<void>& trained) {
    ASSERT_FALSE(trained);
    EXPECT_EQ(trained.error().code, Code::kInternal);
    EXPECT_NE(trained.error().message.find("are used under view"), std::string::npos)
        << trained.error().message;
  }

  const std::vector<int32_t> prompt_ = {1, 2, 3}, answer_ = {4, 5, 6, 7};
  GrpoSettings settings_;
  std::shared_ptr<Net> policy_, reference_;
  Team team_;
  std::unique_ptr<Views> views_;
  StepBatch batch_;
};

TEST_F(ViewsOf, OtherStepsBasesAndKindsAreNotMixed) {
  using Of = Views::Of;
  const LogProbs old = views_->log_probs(Of::kPolicy, View::kCodec, batch_, 1).value();
  const LogProbs dense = views_->log_probs(Of::kPolicy, View::kDense, batch_, 1).value();
  EXPECT_EQ(old.epoch, views_->log_probs(Of::kReference, View::kCodec, batch_, 1)->epoch);
  expect_refused(train(2, old));
  expect_refused(train(1, dense));
  expect_refused(train(1, old, View::kDense));
  EXPECT_TRUE(train(1, old));
  EXPECT_TRUE(train(1, dense, View::kDense));
  ASSERT_EQ(views_->end_step(1, /*committed=*/true).value(), 1);
  expect_refused(train(1, old));  // the basis is another one now
}

TEST_F(ViewsOf, TheLedgerHasTheRowsOfThePassesThatWereAskedFor) {
  const LogProbs old = views_->log_probs(Views::Of::kPolicy, View::kCodec, batch_, 1).value();
  ASSERT_TRUE(views_->log_probs(Views::Of::kPolicy, View::kDense, batch_, 1));
  ASSERT_TRUE(train(1, old));
  const WireLedger wire = views_->take_ledger().value();
  EXPECT_EQ(wire.total(Leg::kForward).rows, 2 * 14) << "two passes over two sequences of seven tokens";
  EXPECT_EQ(wire.total(Leg::kBackward).rows, 14);
  // Traffic that no pass explains.
  views_->wire().record(0, Leg::kForward, 1, 100, 10);
  const Result<WireLedger> stray = views_->take_ledger();
  ASSERT_FALSE(stray);
  EXPECT_NE(stray.error().message.find("1 rows were sent forward, 1 boundaries and the step's passes make 0"),
            std::string::npos)
      << stray.error().message;
}

}  // namespace
}  // namespace forebay::train
