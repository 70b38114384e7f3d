// Verdicts: what is clear, and what only looks so.
#include "lab/gates.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

Series series_of(std::string_view metric, int last, const std::function<double(int)>& value) {
  Series out;
  for (int step = 1; step <= last; ++step)
    EXPECT_TRUE(out.add_line("{\"step\":" + std::to_string(step) + ",\"" + std::string(metric) +
                             "\":" + std::to_string(value(step)) + "}"));
  return out;
}

Verdict judged(std::string_view gate, const Series& series, const Series* control = nullptr) {
  return judge(gate_named(gate).value(), series, control);
}

double wobble(int step) {
  return 1e-4 * ((step * 37) % 11 - 5);
}

TEST(Gates, AFlatGapPassesAndARisingOneFails) {
  const Verdict flat = judged("study.G2", series_of("gap", 120, [](int s) { return 14.2 + wobble(s); }));
  EXPECT_EQ(flat.outcome, Outcome::kPass) << flat.note;
  EXPECT_EQ(flat.estimate.n, 21);
  EXPECT_LT(flat.minimum_detectable, 0.0005);
  const Verdict rising =
      judged("study.G2", series_of("gap", 120, [](int s) { return 14.2 + 0.003 * s + wobble(s); }));
  EXPECT_EQ(rising.outcome, Outcome::kFail);
  EXPECT_NEAR(rising.estimate.value, 0.003, 1e-4);
}

TEST(Gates, NoiseLargerThanTheBarIsUninformative) {
  // 0.295 nats from peak to peak inside the window, against a bar of 0.010 over 20 steps.
  const Verdict verdict =
      judged("study.G2", series_of("gap", 120, [](int s) { return 14.2 + 0.1475 * std::sin(0.9 * s); }));
  EXPECT_EQ(verdict.outcome, Outcome::kUninformative);
  EXPECT_GT(verdict.minimum_detectable, 0.0005);
  EXPECT_NE(verdict.note.find("noise"), std::string::npos);
}

TEST(Gates, WindowsAreNotLookedBeyond) {
  // What happens before and after 100-120 changes nothing.
  const Series plain = series_of("gap", 140, [](int s) { return 2 + wobble(s); });
  const Series wild =
      series_of("gap", 140, [](int s) { return s < 100 || s > 120 ? 50.0 * s : 2 + wobble(s); });
  EXPECT_EQ(judged("study.G2", wild).estimate.value, judged("study.G2", plain).estimate.value);
  const Verdict early = judged("study.G2", series_of("gap", 119, [](int) { return 2; }));
  EXPECT_EQ(early.outcome, Outcome::kUninformative);
  EXPECT_NE(early.note.find("119"), std::string::npos);
  EXPECT_NE(judged("study.G2", series_of("loss", 120, [](int) { return 2; })).note.find("not measured"),
            std::string::npos);
}

TEST(Gates, LearningIsALevel) {
  const auto noisy = [](double level) {
    return series_of("reward", 120, [level](int s) { return level + 0.02 * ((s * 7) % 5 - 2); });
  };
  EXPECT_EQ(judged("study.G1", noisy(0.70)).outcome, Outcome::kPass);
  EXPECT_EQ(judged("study.G1", noisy(0.55)).outcome, Outcome::kFail);
  EXPECT_EQ(judged("study.G1", noisy(0.6248)).outcome, Outcome::kUninformative);
}

TEST(Gates, GainsKnowHowManyAnswersTheyAreOf) {
  const auto run = [](double from, double to, int items) {
    Series out;
    out.add_line("{\"step\":0,\"val_accuracy\":" + std::to_string(from) +
                 ",\"val_items\":" + std::to_string(items) + "}");
    out.add_line("{\"step\":120,\"val_accuracy\":" + std::to_string(to) + "}");
    return out;
  };
  EXPECT_EQ(judged("learns", run(0.55, 0.76, 2000)).outcome, Outcome::kPass);
  EXPECT_EQ(judged("learns", run(0.55, 0.76, 50)).outcome, Outcome::kUninformative);
  EXPECT_EQ(judged("learns", run(0.55, 0.57, 2000)).outcome, Outcome::kFail);
}

TEST(Gates, DenseDriftIsAgainstTheControl) {
  const Series control = series_of("kl_dense", 120, [](int s) { return 0.1 + wobble(s); });
  EXPECT_EQ(judged("dense-drift", series_of("kl_dense", 120, [](int) { return 0.12; }), &control).outcome,
            Outcome::kPass);
  EXPECT_EQ(judged("dense-drift", series_of("kl_dense", 120, [](int) { return 0.2; }), &control).outcome,
            Outcome::kFail);
  EXPECT_EQ(judged("dense-drift", control, nullptr).outcome, Outcome::kUninformative);
}

TEST(Gates, ARatioOfOneIsExact) {
  EXPECT_EQ(judged("on-policy", series_of("ratio_max_dev", 20, [](int) { return 0; })).outcome,
            Outcome::kPass);
  EXPECT_EQ(
      judged("on-policy", series_of("ratio_max_dev", 20, [](int s) { return s == 7 ? 1e-6 : 0; })).outcome,
      Outcome::kFail);
}

TEST(Gates, CodecViewsDecideNothing) {
  for (const Gate& gate : all_gates()) {
    if (gate.metric == "kl_view" || gate.metric.find("entropy") != std::string_view::npos) {
      EXPECT_TRUE(gate.demoted) << gate.name;
    }
  }
  EXPECT_TRUE(fails_with(gate_named("study.G4"), Code::kNotFound, "study.G4", "study.G2"));
}

}  // namespace
}  // namespace forebay::lab
