// The optimiser, the schedule, states and logs, each by itself.
#include <cmath>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "support/memory_storage.h"
#include "support/temporary_directory.h"
#include "train/fit/adamw.h"
#include "train/fit/checkpoint.h"
#include "train/fit/metrics.h"
#include "train/fit/schedule.h"

namespace forebay::train {
namespace {

TEST(Schedule, RisesThenFallsToItsFloor) {
  const Schedule s{.peak = 1e-2, .floor = 0.1, .warmup = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(s.at(1), 1e-3);
  EXPECT_DOUBLE_EQ(s.at(10), 1e-2);
  EXPECT_NEAR(s.at(60), 1e-2 * 0.55, 1e-12);
  EXPECT_NEAR(s.at(110), 1e-3, 1e-12);
  for (int64_t step = 11; step <= 110; ++step) EXPECT_LT(s.at(step), s.at(step - 1));
}

struct Toy : torch::nn::Module {
  Toy() {
    matrix = register_parameter("matrix", torch::arange(6, torch::kFloat32).view({2, 3}) / 7 - 0.3);
    vector = register_parameter("vector", torch::ones({3}));
    unused = register_parameter("unused", torch::ones({2}));
  }
  torch::Tensor loss() const { return (matrix * vector).pow(2).sum() + matrix.sum(); }
  torch::Tensor matrix, vector, unused;
};

TEST(AdamW, FollowsItsFormula) {
  Toy toy;
  const AdamWOptions options{.beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6, .weight_decay = 0.3};
  AdamW adam(toy, options);
  std::vector<double> p, m(6), v(6);
  for (int i = 0; i < 6; ++i) p.push_back(toy.matrix.flatten()[i].item<double>());
  for (int t = 1; t <= 5; ++t) {
    adam.zero_grad();
    toy.loss().backward();
    const torch::Tensor g = toy.matrix.grad().clone();
    adam.step(0.01);
    for (int i = 0; i < 6; ++i) {
      const double gi = g.flatten()[i].item<double>();
      m[i] = 0.8 * m[i] + 0.2 * gi;
      v[i] = 0.9 * v[i] + 0.1 * gi * gi;
      p[i] = p[i] * (1 - 0.01 * 0.3) -
             0.01 * (m[i] / (1 - std::pow(0.8, t))) / (std::sqrt(v[i] / (1 - std::pow(0.9, t))) + 1e-6);
      EXPECT_NEAR(toy.matrix.flatten()[i].item<double>(), p[i], 1e-6);
    }
  }
  EXPECT_TRUE(torch::equal(toy.unused, torch::ones({2}))) << "no gradient, no decay";
}

TEST(AdamW, ClipsTheNormOfAllGradients) {
  Toy toy;
  AdamW adam(toy, {});
  toy.loss().backward();
  const double before = std::sqrt(toy.matrix.grad().pow(2).sum().item<double>() +
                                  toy.vector.grad().pow(2).sum().item<double>());
  EXPECT_NEAR(adam.clip(0.5).item<double>(), before, 1e-5);
  EXPECT_NEAR(std::sqrt(toy.matrix.grad().pow(2).sum().item<double>() +
                        toy.vector.grad().pow(2).sum().item<double>()),
              0.5, 1e-5);
}

TEST(RunState, ComesBackToTheBitOrNamesWhatIsWrong) {
  MemoryStorage storage;
  const torch::Tensor a = torch::randn({3, 4}), b = torch::randn({5});
  ASSERT_TRUE(save_state(storage, "state", {{{"a", a}, {"b", b}}, {{"step", "12"}}}));
  const torch::Tensor a2 = torch::zeros({3, 4}), b2 = torch::zeros({5});
  const auto facts = load_state(storage, "state", {{"a", a2}, {"b", b2}});
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->at("step"), "12");
  EXPECT_TRUE(torch::equal(a, a2) && torch::equal(b, b2));
  const auto wrong = load_state(storage, "state", {{"a", torch::zeros({4, 3})}});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("tensor a"), std::string::npos);
}

TEST(RunState, AFaultLeavesTheOldOne) {
  MemoryStorage storage;
  ASSERT_TRUE(save_state(storage, "state", {{{"a", torch::ones({2})}}, {}}));
  for (const StorageOp op : {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kRename}) {
    FaultyStorage faulty(storage, {.op = op, .fail_at = 1});
    EXPECT_FALSE(save_state(faulty, "state", {{{"a", torch::zeros({2})}}, {}}));
    const torch::Tensor a = torch::zeros({2});
    ASSERT_TRUE(load_state(storage, "state", {{"a", a}}));
    EXPECT_TRUE(torch::equal(a, torch::ones({2})));
  }
}

TEST(Metrics, WhatFollowsATornLineIsALineOfItsOwn) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  const Path path = folder / "metrics.jsonl";
  const auto write = [&](double step) {
    MetricsRow row;
    row.add("step", step);
    row.add("loss", 10 - step);
    EXPECT_TRUE(MetricsLog::open(*storage, path)->write(row));
  };
  write(1);
  {
    const std::string torn = "{\"step\":2,\"lo";
    const auto file = storage->open_to_append(path).value();
    ASSERT_TRUE(file->append(std::as_bytes(std::span(torn))) && file->close());
  }
  write(2);
  write(3);
  EXPECT_EQ(read_curve(read_text(*storage, path).value(), "loss"),
            (std::vector<std::pair<double, double>>{{1, 9}, {2, 8}, {3, 7}}));
}

TEST(Metrics, ACurveSurvivesAResumeAndATornLine) {
  const std::string log =
      "{\"event\":\"start\"}\n{\"step\":1,\"loss\":3.5}\n{\"step\":2,\"loss\":3.0}\n{\"step\":2,\"loss\":2.5,"
      "\"val_loss\":"
      "4}\n{\"step\":3,\"lo";
  EXPECT_EQ(read_curve(log, "loss"), (std::vector<std::pair<double, double>>{{1, 3.5}, {2, 2.5}}));
  EXPECT_EQ(read_curve(log, "val_loss").size(), 1u);
  EXPECT_TRUE(read_curve(log, "nothing").empty());
}

}  // namespace
}  // namespace forebay::train
