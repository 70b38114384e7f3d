// The loop: it learns, it stops and goes on to the same bits, it refuses what does not fit.
#include "train/fit/fit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"
#include "train/fit/losses.h"
#include "train/fit/metrics.h"
#include "train/nets/files.h"
#include "train/nets/toy.h"

namespace forebay::train {
namespace {

/// A language with rules: runs that count upwards, each document from another start.
FitData counting(int n_documents = 40) {
  FitData data;
  for (Documents* documents : {&data.train, &data.validation.emplace()})
    for (int d = 0; d < n_documents; ++d) {
      std::vector<int32_t> ids;
      for (int i = 0; i < 20; ++i) ids.push_back(1 + (d * 7 + i * (1 + d % 3)) % 30);
      documents->add(ids, std::vector<uint8_t>(ids.size(), 1));
    }
  return data;
}

FitOptions quick(int64_t steps) {
  FitOptions options;
  options.batch = 4;
  options.row_tokens = 24;
  options.schedule = {.peak = 5e-3, .floor = 0.1, .warmup = 4, .steps = steps};
  options.checkpoint_every = 0;
  options.auxiliary = {.balance = 0.01, .indexer = 0.1};
  options.mtp = 0.3;
  return options;
}

ModelConfig model(bool hyper) {
  if (hyper) return hyper_config({.n_vocab = 32, .d_model = 16, .n_experts = 4, .index_budget = 8});
  return dense_config({.n_vocab = 32, .d_model = 32, .n_blocks = 2, .d_ffn = 48});
}

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

class FitTest : public ::testing::TestWithParam<bool> {
 protected:
  FitPlace place(const char* name, bool resume = false) {
    return {*storage_, folder_ / name, "lr = 1", resume, ProgressStyle::kSilent};
  }
  std::shared_ptr<Net> net() const {
    return must(make_net(model(GetParam()), whole_model(model(GetParam())), 3));
  }

  TemporaryDirectory folder_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
  const FitData data_ = counting();
};
INSTANTIATE_TEST_SUITE_P(Nets, FitTest, ::testing::Bool());

TEST_P(FitTest, Learns) {
  constexpr int64_t kSteps = 80;
  FitOptions options = quick(kSteps);
  options.schedule.peak = 1e-2;
  options.validate_every = kSteps;
  const auto trained = net();
  const FitReport report = must(fit(*trained, data_, options, place("run"), {}));
  EXPECT_EQ(report.steps_done, kSteps);
  // Who looks back one token cannot know which of the three ways of counting it is: log 3. Chance is log 32.
  EXPECT_LT(report.validation_loss, std::log(3));
  const std::string log = must(read_text(*storage_, folder_ / "run" / "metrics.jsonl"));
  const auto curve = read_curve(log, "loss");
  EXPECT_EQ(curve.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(curve.back().second, curve.front().second - 0.5);
  EXPECT_EQ(read_curve(log, "draft_loss").size(), GetParam() ? curve.size() : 0u);
}

TEST_P(FitTest, StoppedAndResumedIsTheSameToTheBit) {
  const FitOptions options = quick(10);
  const auto whole = net();
  must(fit(*whole, data_, options, place("whole"), {}));
  FitOptions half = options;
  half.stop_after = 5;
  const FitReport stopped = must(fit(*net(), data_, half, place("parts"), {}));
  EXPECT_TRUE(stopped.was_stopped);
  const auto resumed = net();
  EXPECT_EQ(must(fit(*resumed, data_, options, place("parts", true), {})).steps_done, 10);
  for (const auto& item : whole->named_parameters())
    EXPECT_TRUE(torch::equal(item.value(), resumed->named_parameters()[item.key()])) << item.key();
  EXPECT_EQ(read_curve(must(read_text(*storage_, folder_ / "whole" / "metrics.jsonl")), "loss"),
            read_curve(must(read_text(*storage_, folder_ / "parts" / "metrics.jsonl")), "loss"));
}

TEST_P(FitTest, MicroBatchesAddUpToTheStep) {
  FitOptions options = quick(3);
  options.auxiliary = {};  // a mean over other tokens with other batches
  const auto together = net(), apart = net();
  must(fit(*together, data_, options, place("together"), {}));
  options.micro_batch = 1;
  must(fit(*apart, data_, options, place("apart"), {}));
  for (const auto& item : together->named_parameters())
    EXPECT_TRUE(torch::allclose(item.value(), apart->named_parameters()[item.key()], 1e-2, 2e-3))
        << item.key();
}

TEST(Fit, RefusesOtherDataAnotherRecipeAndADirectoryInUse) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  const ModelConfig config = model(false);
  const auto net = must(make_net(config, whole_model(config), 3));
  FitOptions options = quick(4);
  options.stop_after = 2;
  FitPlace place{*storage, folder / "run", "a = 1", false, ProgressStyle::kSilent};
  must(fit(*net, counting(), options, place, {}));
  EXPECT_EQ(fit(*net, counting(), options, place, {}).error().code, Code::kInvalidArgument);
  place.resume = true;
  const auto other_data = fit(*net, counting(39), options, place, {});
  ASSERT_FALSE(other_data);
  EXPECT_NE(other_data.error().message.find("other data"), std::string::npos);
  const FitPlace other_recipe{*storage, folder / "run", "a = 2", true, ProgressStyle::kSilent};
  const auto refused = fit(*net, counting(), options, other_recipe, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another recipe"), std::string::npos);
  options.device = "gpu";
  EXPECT_EQ(fit(*net, counting(), options, place, {}).error().message,
            "train.device is 'gpu': wanted cpu, cuda or cuda:N");
  options.device = "cpu";
  const FitPlace nowhere{*storage, folder / "nowhere", "a = 1", true, ProgressStyle::kSilent};
  const auto nothing = fit(*net, counting(), options, nowhere, {});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("no run to go on from"), std::string::npos);
}

TEST(Fit, AStopEndsAfterTheStepWithAState) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  const ModelConfig config = model(false);
  const auto net = must(make_net(config, whole_model(config), 3));
  std::stop_source stop;
  stop.request_stop();
  const FitPlace place{*storage, folder / "run", "", false, ProgressStyle::kSilent};
  const FitReport report = must(fit(*net, counting(), quick(50), place, stop.get_token()));
  EXPECT_TRUE(report.was_stopped);
  EXPECT_EQ(report.steps_done, 1);
  EXPECT_TRUE(storage->exists(folder / "run" / "state.safetensors"));
}

TEST(Losses, CountWhatHasWeight) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig config = model(true);
  const auto net = must(make_net(config, whole_model(config), 4));
  Rows rows{torch::arange(12).view({1, 12}), torch::arange(1, 13).view({1, 12}), torch::zeros({1, 12})};
  EXPECT_EQ(losses_of(*net, rows, true).next.item<double>(), 0);
  rows.weights_BT[0][4] = 1;
  const torch::Tensor logits = net->logits(rows.ids_BT)[0];
  EXPECT_NEAR(losses_of(*net, rows, true).next.item<double>(), -logits.log_softmax(-1)[4][5].item<double>(),
              1e-5);
  const torch::Tensor draft = net->draft_logits(net->trunk(rows.ids_BT), rows.ids_BT)[0];
  EXPECT_NEAR(losses_of(*net, rows, true).draft.item<double>(), -draft.log_softmax(-1)[3][5].item<double>(),
              1e-5);
}

}  // namespace
}  // namespace forebay::train
