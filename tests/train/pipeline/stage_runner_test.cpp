// Stages as threads over TCP: the same numbers as in one process, the time that the formulas say, and
// failures that everyone hears of.
#include "train/pipeline/stage_runner.h"

#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "../comm/ranks.h"
#include "compare.h"
#include "train/pipeline/schedule.h"
#include "train/wire/make_codec.h"

namespace forebay::train {
namespace {

TEST(StageRunner, IsTheLocalRunnerToTheBit) {
  for (const int n_stages : {1, 2, 4})
    for (const View view : {View::kCodec, View::kDense})
      expect_all_well(run_ranks(n_stages, [&](Rank& rank) -> Result<void> {
        const Difference difference = TRY(compare_with_local(*rank.comm, {.has_auxiliary = true}, view));
        return check(difference.logits == 0 && difference.gradients == 0 && difference.norm == 0,
                     fmt::format("logits {} gradients {} norm {}", difference.logits, difference.gradients,
                                 difference.norm));
      }));
}

TEST(StageRunner, EveryCodecIsTheSameOverTheWire) {
  for (const char* name : {"dense", "prf", "sr", "rn", "prf-sr", "powersgd", "frlr", "frlr-unbiased"})
    expect_all_well(run_ranks(2, [&](Rank& rank) -> Result<void> {
      CodecOptions options;
      options.name = name;
      options.keep = 0.25;
      const std::unique_ptr<Codec> codec = TRY(make_codec(options, 64));
      const std::unique_ptr<Codec> local_codec = TRY(make_codec(options, 64));
      const Difference difference =
          TRY(compare_with_local(*rank.comm, {.width = 64}, View::kCodec, *codec, *local_codec));
      return check(difference.logits == 0 && difference.gradients == 0 && difference.norm == 0,
                   fmt::format("{}: logits {} gradients {} norm {}", name, difference.logits,
                               difference.gradients, difference.norm));
    }));
}

TEST(StageRunner, TiedEmbeddingsAreOneParameter) {
  std::mutex mutex;
  Difference most;
  for (const int n_stages : {1, 2, 3})
    for (const View view : {View::kCodec, View::kDense})
      expect_all_well(run_ranks(n_stages, [&](Rank& rank) -> Result<void> {
        const Difference difference =
            TRY(compare_with_local(*rank.comm, {.has_auxiliary = true, .ties_head = true}, view));
        const std::lock_guard lock(mutex);
        most.logits = std::max(most.logits, difference.logits);
        most.gradients = std::max(most.gradients, difference.gradients);
        most.norm = std::max(most.norm, difference.norm);
        return {};
      }));
  fmt::print("tied embeddings: max |difference| of logits {:g}, gradients {:g}, norm {:g}\n", most.logits,
             most.gradients, most.norm);
  EXPECT_EQ(std::max({most.logits, most.gradients, most.norm}), 0);
}

TEST(StageRunner, StagesThatAreNotOneModelAreRefused) {
  const std::vector<Result<void>> results = run_ranks(2, [&](Rank& rank) -> Result<void> {
    ToyNet net(ToyShape{}, {0, 2, true, false});
    TRY(make_stage_runner(net, *rank.comm, {}));
    return {};
  });
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("stage 1 of 2 has blocks 0 to 2"), std::string::npos)
        << result.error().message;
  }
}

/// The time of one training step of `n` micro-batches, and what the pipeline counted.
struct Measured {
  double step_s = 0;
  std::vector<PipelineTimes> times;
};

Measured measure(int n_stages, size_t n, double sleep_s, const LinkOptions& link) {
  Measured measured;
  measured.times.resize(static_cast<size_t>(n_stages));
  std::mutex mutex;
  expect_all_well(run_ranks(
      n_stages,
      [&](Rank& rank) -> Result<void> {
        const ToyShape shape{.n_blocks = n_stages, .sleep_s = sleep_s};
        ToyNet net(shape, split_blocks(n_stages, n_stages).value()[static_cast<size_t>(rank.comm->rank())]);
        ToyCodec codec;
        const std::unique_ptr<StageRunner> runner = TRY(make_stage_runner(
            net, *rank.comm, {.codecs = std::vector<Codec*>(static_cast<size_t>(n_stages) - 1, &codec)}));
        const std::vector<MicroBatch> batches = toy_batches(n, shape);
        const auto loss = [&](size_t i, const torch::Tensor& x) { return toy_loss(x, batches[i].ids_BT); };
        TRY(runner->train(std::span(batches).first(1), 0, loss));  // connections, caches
        TRY(rank.comm->barrier_named("start"));
        runner->reset_times();
        const Clock::time_point start = Clock::now();
        TRY(runner->train(batches, 1, loss));
        TRY(rank.comm->barrier_named("end"));
        const std::lock_guard lock(mutex);
        measured.step_s = std::max(measured.step_s, seconds_since(start));
        measured.times[static_cast<size_t>(rank.comm->rank())] = runner->times();
        return {};
      },
      link));
  return measured;
}

TEST(StageRunner, TakesTheTimeOfTheFormulas) {
  constexpr int kStages = 4;
  constexpr size_t kMicroBatches = 8;
  constexpr double kForward = 0.01, kBackward = 2 * kForward;
  const Measured fast = measure(kStages, kMicroBatches, kForward, {});
  const double work = kMicroBatches * (kForward + kBackward);
  const double predicted = (kMicroBatches + kStages - 1) * (kForward + kBackward);
  fmt::print(
      "{} stages, {} micro-batches: step {:.3f} s, predicted {:.3f} s; bubble {:.1f} %, formula {:.1f} %\n",
      kStages, kMicroBatches, fast.step_s, predicted, 100 * (1 - work / fast.step_s),
      100 * bubble_share(kStages, kMicroBatches));
  EXPECT_GE(fast.step_s, predicted * 0.99);
  EXPECT_LE(fast.step_s, predicted * 5);  // the machine may be busy

  // A link in whose time nothing else happens: latency of each hop of the first forward and the last
  // backward.
  const LinkOptions link{.bytes_per_second = 1e5, .latency_s = 0.02};
  const Measured slow = measure(kStages, kMicroBatches, kForward, link);
  const double message =
      8.0 * 4 * 4 * 2 / 1e5;  // at most 8 rows of 4 f32 numbers, a little more with 5 positions
  const double hop = message + link.latency_s;
  const double least = predicted + 2 * (kStages - 1) * link.latency_s;
  // One forward and one backward wait for each other across a boundary: at worst each pair pays both hops.
  const double most = predicted + 2 * hop * (kMicroBatches + kStages);
  fmt::print("the same over {:g} B/s and {:g} ms: step {:.3f} s, between {:.3f} s and {:.3f} s\n",
             link.bytes_per_second, link.latency_s * 1000, slow.step_s, least, most);
  EXPECT_GE(slow.step_s, least * 0.99);
  EXPECT_LE(slow.step_s, most * 5);
  for (const PipelineTimes& times : slow.times) EXPECT_GE(times.total, times.compute + times.wait);
}

TEST(StageRunner, AFailureOfOneStageIsEveryonesError) {
  const Clock::time_point start = Clock::now();
  const std::vector<Result<void>> results = run_ranks(3, [&](Rank& rank) -> Result<void> {
    ToyNet net(ToyShape{}, split_blocks(4, 3).value()[static_cast<size_t>(rank.comm->rank())]);
    const std::unique_ptr<StageRunner> runner = TRY(make_stage_runner(net, *rank.comm, {}));
    const std::vector<MicroBatch> batches = toy_batches(4, {});
    return runner->train(batches, 0, [&](size_t i, const torch::Tensor& x) -> torch::Tensor {
      if (i == 2) throw std::runtime_error("the reward is gone");
      return toy_loss(x, batches[i].ids_BT);
    });
  });
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "rank 2: the reward is gone");
  }
  EXPECT_LT(seconds_since(start), 5);
}

TEST(StageRunner, BatchesThatDifferAreNoticed) {
  const std::vector<Result<void>> results = run_ranks(2, [&](Rank& rank) -> Result<void> {
    ToyNet net(ToyShape{}, split_blocks(4, 2).value()[static_cast<size_t>(rank.comm->rank())]);
    const std::unique_ptr<StageRunner> runner = TRY(make_stage_runner(net, *rank.comm, {}));
    const std::vector<MicroBatch> batches = toy_batches(2, {});
    return runner->forward(batches, View::kCodec, rank.comm->rank(), [](size_t, const torch::Tensor&) {});
  });
  for (size_t rank = 1; rank < 2; ++rank) {
    ASSERT_FALSE(results[rank]);
    EXPECT_NE(results[rank].error().message.find("was due"), std::string::npos)
        << results[rank].error().message;
  }
}

}  // namespace
}  // namespace forebay::train
