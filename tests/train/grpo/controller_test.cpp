#include "train/grpo/controller.h"

#include <cmath>

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

SetpointTable flat(double nats) {
  return SetpointTable::create(std::vector<double>{0, nats}, 1).value();
}

TEST(BetaController, FollowsTheViolationToTheBound) {
  BetaController up({}, flat(0.1), 0.001);
  double before = up.beta();
  for (int step = 0; step < 100; ++step) {
    up.update(step, 0.2);
    EXPECT_GE(up.beta(), before);
    before = up.beta();
  }
  EXPECT_EQ(up.beta(), 0.1);
  BetaController down({}, flat(0.1), 0.05);
  for (int step = 0; step < 100; ++step) down.update(step, 0.01);
  EXPECT_EQ(down.beta(), 1e-4);
}

TEST(BetaController, RestsAtTheSetpoint) {
  BetaController c({}, flat(0.1), 0.01);
  for (int step = 0; step < 50; ++step) c.update(step, 0.1);
  EXPECT_EQ(c.beta(), 0.01);
  c.update(51, std::nan(""));
  EXPECT_EQ(c.beta(), 0.01);
}

TEST(BetaController, NothingPilesUpAtABound) {
  BetaController c({.eta = 0.05}, flat(0.1), 0.1);
  for (int step = 0; step < 1000; ++step) c.update(step, 5);
  c.update(1000, 0.0);
  EXPECT_NEAR(c.beta(), 0.1 - 0.05 * 0.1, 1e-12)
      << "one probe below the setpoint is enough to come off the bound";
}

TEST(SetpointTable, IsLinearBetweenItsPointsAndFlatOutside) {
  const SetpointTable t = SetpointTable::create(std::vector<double>{10, 0.1, 20, 0.3}, 1.5).value();
  EXPECT_NEAR(t.at(0), 0.15, 1e-12);
  EXPECT_NEAR(t.at(10), 0.15, 1e-12);
  EXPECT_NEAR(t.at(15), 0.3, 1e-12);
  EXPECT_NEAR(t.at(99), 0.45, 1e-12);
}

TEST(SetpointTable, RefusesWhatIsNoTable) {
  const auto message = [](std::vector<double> points) {
    const auto table = SetpointTable::create(points, 1.5);
    return table ? std::string() : table.error().message;
  };
  EXPECT_NE(message({}).find("no points"), std::string::npos);
  EXPECT_NE(message({0, 0.0}).find("0 nats at step 0, expected more than 0"), std::string::npos);
  EXPECT_NE(message({5, 0.1, 5, 0.2}).find("rising"), std::string::npos);
  EXPECT_NE(message({5}).find("pairs"), std::string::npos);
  EXPECT_FALSE(SetpointTable::create(std::vector<double>{0, 1}, 0));
}

TEST(SetpointTable, ReadsAControlsRecord) {
  const auto t = SetpointTable::from_metrics(
      "{\"step\":1,\"kl_dense\":0}\n{\"step\":10,\"kl_dense\":0.2}\n{\"step\":11}\n{\"event\":\"resume\"}\n"
      "{\"step\":10,\"kl_dense\":0.1}\n{\"step\":20,\"kl_den",
      1);
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_NEAR(t->at(15), 0.1, 1e-12);
  EXPECT_FALSE(SetpointTable::from_metrics("{\"step\":1,\"kl_dense\":0}\n", 1));
  EXPECT_FALSE(SetpointTable::from_metrics("no json\n", 1));
}

TEST(LrBrake, FiresWhenTheGapJumps) {
  LrBrake brake({});
  for (int i = 0; i < 5; ++i) {
    brake.update(0.01);
    EXPECT_EQ(brake.scale(), 1);
  }
  brake.update(-0.05);
  EXPECT_EQ(brake.scale(), 0.5);
  EXPECT_EQ(brake.n_fired(), 1);
  const LrBrake::State state = brake.state();
  brake.update(0.012);
  EXPECT_EQ(brake.scale(), 1) << "for one interval";
  LrBrake other({});
  other.restore(state);
  EXPECT_EQ(other.scale(), 0.5);
  other.update(0.012);
  EXPECT_EQ(other.scale(), 1);
  EXPECT_EQ(other.n_fired(), 1);
}

TEST(LrBrake, RoundingIsNoGap) {
  LrBrake brake({});
  brake.update(1e-9);
  brake.update(1e-7);
  EXPECT_EQ(brake.n_fired(), 0);
}

}  // namespace
}  // namespace forebay::train
