#include "synth/deck.h"

#include <cmath>

#include <gtest/gtest.h>

#include "quant/quant.h"
#include "support/result_matchers.h"

namespace forebay::synth {
namespace {

std::vector<float> dealt_row(const Deck& deck, DType type, int64_t n, Key key, uint64_t row) {
  std::vector<std::byte> bytes(static_cast<size_t>(row_bytes(type, n)));
  deck.deal(key, row, bytes.data());
  std::vector<float> values(static_cast<size_t>(n));
  decode_row(type, bytes.data(), n, values.data());
  return values;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const double n = static_cast<double>(values.size()), mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean)};
}

TEST(Deck, EveryTypeHasFiniteWeightsOfTheWantedDeviation) {
  int n_types = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const auto type = dtype_from_id(id);
    if (!type || find_codec(*type) == nullptr || *type == DType::kQ8_K) continue;
    ++n_types;
    SCOPED_TRACE(name_of(*type));
    constexpr int64_t kColumns = 1024, kWeights = 1 << 17;
    const Result<Deck> deck = Deck::make(*type, kColumns, kWeights, {.mean = 0, .deviation = 0.02}, Key{7});
    ASSERT_OK(deck);
    std::vector<float> all;
    for (uint64_t row = 0; row < 100; ++row) {
      const std::vector<float> values = dealt_row(*deck, *type, kColumns, Key{1}, row);
      all.insert(all.end(), values.begin(), values.end());
    }
    const Moments got = moments(all);
    EXPECT_TRUE(std::isfinite(got.deviation));
    const bool coarse_scale = *type == DType::kMXFP4 || *type == DType::kNVFP4;
    EXPECT_NEAR(got.deviation, 0.02, coarse_scale ? 0.008 : 0.001);
    EXPECT_NEAR(got.mean, 0, 0.0015);
  }
  EXPECT_GE(n_types, 25);
}

TEST(Deck, MeanIsKept) {
  const Result<Deck> deck =
      Deck::make(DType::kQ8_0, 320, Deck::kMaxWeights, {.mean = 0.7, .deviation = 0.7}, Key{7});
  ASSERT_OK(deck);
  std::vector<float> all;
  for (uint64_t row = 0; row < 100; ++row) {
    const std::vector<float> values = dealt_row(*deck, DType::kQ8_0, 320, Key{1}, row);
    all.insert(all.end(), values.begin(), values.end());
  }
  EXPECT_NEAR(moments(all).mean, 0.7, 0.02);
  EXPECT_NEAR(moments(all).deviation, 0.7, 0.02);
}

TEST(Deck, RowsAndKeysGiveOtherCards) {
  const Result<Deck> deck = Deck::make(DType::kF32, 512, Deck::kMaxWeights, {}, Key{7});
  ASSERT_OK(deck);
  const std::vector<float> a = dealt_row(*deck, DType::kF32, 512, Key{1}, 0);
  const std::vector<float> b = dealt_row(*deck, DType::kF32, 512, Key{1}, 1);
  const std::vector<float> c = dealt_row(*deck, DType::kF32, 512, Key{2}, 0);
  double ab = 0, ac = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i] / 512;
    ac += a[i] * c[i] / 512;
  }
  EXPECT_NEAR(ab, 0, 0.2);
  EXPECT_NEAR(ac, 0, 0.2);
  EXPECT_EQ(a, dealt_row(*deck, DType::kF32, 512, Key{1}, 0));
}

TEST(Deck, RefusesRowsThatBlocksDoNotDivide) {
  EXPECT_TRUE(
      fails_with(Deck::make(DType::kQ4_K, 640, 1 << 16, {}, Key{}), Code::kInvalidArgument, "640", "Q4_K"));
  EXPECT_TRUE(fails_with(Deck::make(DType::kI32, 64, 1 << 16, {}, Key{}), Code::kInvalidArgument, "I32"));
}

TEST(Key, NumbersAreNormalAndBounded) {
  std::vector<float> values(100'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = Key{3}.normal(i);
  EXPECT_NEAR(moments(values).mean, 0, 0.02);
  EXPECT_NEAR(moments(values).deviation, 1, 0.01);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 3.47f);
  EXPECT_NE(Key{3}.named("a").value, Key{3}.named("b").value);
  EXPECT_NE(Key{3}.named("a").value, Key{4}.named("a").value);
}

}  // namespace
}  // namespace forebay::synth
