#include "plan/speed.h"

#include <gtest/gtest.h>

#include "tiny_model.h"

namespace forebay {
namespace {

TEST(HitCurve, GoesThroughItsPoints) {
  const HitCurve curve = HitCurve::published();
  EXPECT_EQ(curve.hits(0), 0);
  EXPECT_DOUBLE_EQ(curve.hits(0.24), 0.82);
  EXPECT_EQ(curve.hits(1), 1);
  EXPECT_DOUBLE_EQ(curve.hits(0.12), 0.41);
  EXPECT_DOUBLE_EQ(curve.hits(0.62), 0.91);
  EXPECT_EQ(curve.hits(2), 1);
  EXPECT_EQ(curve.hits(-1), 0);
}

TEST(HitCurve, TakesMeasuredPoints) {
  const HitCurve curve({{0.1, 0.4}, {0.5, 0.9}}, "measured");
  EXPECT_EQ(curve.source(), "measured");
  EXPECT_DOUBLE_EQ(curve.hits(0.3), 0.65);
  double last = 0;
  for (double share = 0; share <= 1; share += 0.01) {
    EXPECT_GE(curve.hits(share), last);
    last = curve.hits(share);
  }
}

TEST(Rates, KernelsAreNoFasterThanMemory) {
  MachineRates rates{.disk = 1,
                     .memory = 10,
                     .kernels = {{DType::kQ4_K, 4}, {DType::kF32, 40}},
                     .disk_source = {},
                     .memory_source = {}};
  EXPECT_EQ(rates.of_weights(DType::kQ4_K), 4);
  EXPECT_EQ(rates.of_weights(DType::kF32), 10);
  EXPECT_EQ(rates.of_weights(DType::kQ8_0), 10) << "not measured";
}

TEST(Speed, ByHand) {
  const ModelFootprint model = testing::tiny_model();
  MachineRates rates{.disk = 1000,
                     .memory = 20000,
                     .kernels = {{DType::kF32, 10000}},
                     .disk_source = {},
                     .memory_source = {}};
  const HitCurve half({{0.5, 0.75}}, "test");
  const Speed s = estimate_speed(model, {model.all_slots_bytes() / 2, 0, 400, 200}, rates, half);
  EXPECT_DOUBLE_EQ(s.resident_share, 0.5);
  EXPECT_DOUBLE_EQ(s.hit_rate, 0.75);
  EXPECT_EQ(s.cold_bytes, 98304u);
  EXPECT_EQ(s.disk_bytes, 98304u / 4);
  EXPECT_DOUBLE_EQ(s.disk_seconds, 24.576);
  EXPECT_DOUBLE_EQ(s.expert_seconds, 9.8304);
  // Weights at the kernels' rate, the state at memory's: the fixed part is read and written.
  EXPECT_DOUBLE_EQ(s.trunk_seconds, static_cast<double>(model.trunk_read_bytes) / 10000 + 1000.0 / 20000);
  EXPECT_DOUBLE_EQ(s.seconds_per_token(), s.trunk_seconds + s.disk_seconds)
      << "experts compute under the reads";
  EXPECT_EQ(s.bound(), "disk");
  rates.disk = 1e9;
  EXPECT_EQ(estimate_speed(model, {}, rates, half).bound(), "experts");
}

TEST(Speed, NgramRowsThatAreNotKeptAreRead) {
  ModelFootprint model = testing::tiny_model();
  const auto read = [&](uint64_t ngram_rows) {
    const HeldBytes held{.arena = model.all_slots_bytes(), .ngram_rows = ngram_rows};
    return estimate_speed(model, held, assumed_rates(), HitCurve::published()).disk_bytes;
  };
  EXPECT_EQ(read(0), 0u);
  model.config.ngram.block = 1;
  model.config.ngram.ngram_size = 3;
  model.config.ngram.heads_per_ngram = 8;
  model.ngram_bytes = 1'000'000;
  EXPECT_EQ(read(0), 16u * 4096);
  EXPECT_EQ(read(999'999), 16u * 4096);
  EXPECT_EQ(read(1'000'000), 0u);
}

}  // namespace
}  // namespace forebay
