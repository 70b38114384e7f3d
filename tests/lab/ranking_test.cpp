// The ranking: what may rank, who may be ranked, in which order.
#include "lab/ranking.h"

#include <functional>
#include <type_traits>

#include <gtest/gtest.h>

namespace forebay::lab {
namespace {

// Only metrics without codec can be named, and nothing else becomes one.
static_assert(!std::is_constructible_v<DenseMetric, std::string_view>);
static_assert(!std::is_constructible_v<DenseMetric, const char*>);
static_assert(!std::is_default_constructible_v<DenseMetric>);

TEST(Ranking, CodecViewsAreNoMetrics) {
  for (const char* metric :
       {"kl_view", "actor/kl_loss", "actor/entropy", "entropy", "entropy_view", "loss", ""})
    EXPECT_FALSE(DenseMetric::named(metric)) << metric;
  for (const char* metric : {"gap", "gap_dense", "kl_dense", "reward", "val_accuracy", "grad_norm"})
    EXPECT_TRUE(DenseMetric::named(metric)) << metric;
}

Series run(int last, const std::function<double(int)>& gap, double kl_dense = 0.1, double bits = 100,
           double kl_view = 1) {
  Series out;
  for (int step = 1; step <= last; ++step)
    out.add_line("{\"step\":" + std::to_string(step) + ",\"gap\":" + std::to_string(gap(step)) +
                 ",\"grad_norm\":1,\"reward\":0.5,\"kl_dense\":" + std::to_string(kl_dense) +
                 ",\"kl_view\":" + std::to_string(kl_view) + ",\"wire_bits_fwd\":" + std::to_string(bits) +
                 "}");
  return out;
}

TEST(Ranking, ByDriftWithinTheHorizon) {
  const Series dense = run(600, [](int) { return 1e-3; });
  const Series flat = run(600, [](int) { return 10.0; });
  const Series rising = run(600, [](int s) { return 10 + 0.01 * s; });
  const Series brief = run(120, [](int) { return 5.0; });
  // Falls apart, but after the horizon.
  const Series longer = run(700, [](int s) { return s <= 600 ? 10 + 0.001 * s : 100.0; });
  const Series wide = run(
      600, [](int) { return 1.0; }, 0.1, 2000);
  const Series drifted = run(
      600, [](int) { return 1.0; }, 0.3);
  const Series broken = run(600, [](int) { return 1.0; });
  const std::vector<Arm> arms = {{"rising", false, false, &rising}, {"brief", false, false, &brief},
                                 {"dense", true, false, &dense},    {"longer", false, false, &longer},
                                 {"wide", false, false, &wide},     {"drifted", false, false, &drifted},
                                 {"flat", false, false, &flat},     {"broken", false, true, &broken}};
  const std::vector<RankedArm> ranked =
      rank(arms, &dense, {.horizon = 600, .settled = 100, .wire_bits = 1232}, DenseMetric::reward());
  std::vector<std::string> order;
  for (const RankedArm& arm : ranked) order.push_back(arm.name + " " + std::string(name_of(arm.standing)));
  EXPECT_EQ(order, (std::vector<std::string>{"flat ranked", "longer ranked", "rising ranked",
                                             "dense reference", "brief unproven", "broken collapsed",
                                             "wide ineligible", "drifted vetoed"}));
  EXPECT_NEAR(ranked[2].gap_drift, (10 + 5.9) / (10 + 1), 1e-6);
  EXPECT_NE(ranked[4].why.find("120 steps of 600"), std::string::npos);
}

TEST(Ranking, NoCodecViewChangesIt) {
  const Series dense = run(120, [](int) { return 1e-3; });
  const Series a = run(120, [](int s) { return 1 + 0.001 * s; }),
               b = run(120, [](int s) { return 1 + 0.002 * s; });
  const Series a_loud = run(
      120, [](int s) { return 1 + 0.001 * s; }, 0.1, 100, 500);
  for (const Series* first : {&a, &a_loud}) {
    const std::vector<Arm> arms = {{"a", false, false, first}, {"b", false, false, &b}};
    EXPECT_EQ(rank(arms, &dense, {.horizon = 120}, DenseMetric::reward())[0].name, "a");
  }
}

}  // namespace
}  // namespace forebay::lab
