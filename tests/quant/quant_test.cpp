// What holds for every encoder, whatever its bytes: small errors, zeros, scaling, refusals.
#include "quant/quant.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "vectors.h"

namespace forebay {
namespace {

/// How well a format does. Bounds are a little above what was measured, so that a worse encoder shows.
struct Quality {
  DType type;
  double gaussian_error;  // rms error / rms weight of a Gaussian row
  double worst_error;     // largest error / largest weight of the block, for any row tried
  double scale_error;     // half the smallest step of its stored scale, times the largest factor
};
constexpr double kHalfStep = 0x1p-25;  // of half-precision scales
constexpr Quality kQualities[] = {
    {DType::kF32, 0, 0, 0},
    {DType::kF16, 0.00021, 5e-4, kHalfStep},
    {DType::kBF16, 0.0017, 4e-3, 0},
    {DType::kQ4_0, 0.091, 0.126, 8 * kHalfStep},
    {DType::kQ4_1, 0.081, 0.07, 15 * kHalfStep},
    {DType::kQ5_0, 0.045, 0.063, 16 * kHalfStep},
    {DType::kQ5_1, 0.039, 0.035, 31 * kHalfStep},
    {DType::kQ8_0, 0.0056, 0.0045, 127 * kHalfStep},
    {DType::kQ8_K, 0.0073, 0.0045, 0},
    {DType::kQ1_0, 0.62, 1, kHalfStep},
    {DType::kQ2_0, 0.72, 0.51, kHalfStep},
    {DType::kQ2_K, 0.31, 0.5, 45 * kHalfStep},
    {DType::kQ3_K, 0.16, 0.3, 128 * kHalfStep},
    {DType::kQ4_K, 0.074, 0.15, 945 * kHalfStep},
    {DType::kQ5_K, 0.037, 0.08, 1953 * kHalfStep},
    {DType::kQ6_K, 0.019, 0.04, 4096 * kHalfStep},
    {DType::kIQ4_NL, 0.079, 0.15, 127 * kHalfStep},
    {DType::kIQ4_XS, 0.08, 0.15, 4064 * kHalfStep},
    {DType::kTQ1_0, 0.82, 0.51, kHalfStep},
    {DType::kTQ2_0, 0.82, 0.51, kHalfStep},
    {DType::kMXFP4, 0.12, 0.26, 0},
    {DType::kNVFP4, 0.11, 0.2, 12 * 0x1p-11},
};

constexpr size_t kRow = 2048;

std::vector<float> round_trip(DType type, const std::vector<float>& x) {
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(type, static_cast<int64_t>(x.size()))));
  const Result<void> encoded = encode_row(type, x, blocks.data());
  EXPECT_TRUE(encoded) << encoded.error().message;
  std::vector<float> w(x.size());
  decode_row(type, blocks.data(), static_cast<int64_t>(x.size()), w.data());
  return w;
}

std::vector<float> gaussian(float deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> x(kRow);
  for (float& value : x) value = draw(random);
  return x;
}

std::vector<float> laplace(float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<float> draw(1 / scale);
  std::vector<float> x(kRow);
  for (float& value : x) value = draw(random) * (random() & 1 ? 1.0f : -1.0f);
  return x;
}

double rms(const std::vector<float>& x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

class RoundTrip : public ::testing::TestWithParam<Quality> {
 protected:
  void expect_close(const std::vector<float>& x, const char* what) {
    const Quality& quality = GetParam();
    const std::vector<float> w = round_trip(quality.type, x);
    const auto block = static_cast<size_t>(info(quality.type).block_weights);
    for (size_t begin = 0; begin < x.size(); begin += block) {
      double largest = 0;
      for (size_t i = begin; i < begin + block; ++i) largest = std::max(largest, std::fabs(double{x[i]}));
      const double limit = quality.worst_error * largest + quality.scale_error;
      for (size_t i = begin; i < begin + block; ++i)
        ASSERT_LE(std::fabs(double{w[i]} - x[i]), limit)
            << what << ": weight " << i << " is " << x[i] << ", came back " << w[i] << ", block's largest "
            << largest;
    }
  }
};

TEST_P(RoundTrip, GaussianErrorIsThatOfTheFormat) {
  const Quality& quality = GetParam();
  const std::vector<float> x = gaussian(0.02f, 1);
  const double error = rms(difference(round_trip(quality.type, x), x)) / rms(x);
  EXPECT_LE(error, quality.gaussian_error);
  EXPECT_GE(error, 0.9 * quality.gaussian_error) << "the bound says nothing";
}

TEST_P(RoundTrip, WorstErrorIsBounded) {
  expect_close(gaussian(0.02f, 2), "gaussian");
  expect_close(laplace(0.5f, 3), "laplace");
  expect_close(gaussian(1e-5f, 4), "tiny");
  expect_close(gaussian(1e-9f, 5), "below half precision");
  expect_close(gaussian(1e-30f, 6), "far below");
  if (GetParam().type != DType::kNVFP4) expect_close(gaussian(1e4f, 7), "large");  // NVFP4 ends at 2688
  for (float value : {1.0f, -1.0f, 0.0371f, -1000.0f})
    expect_close(std::vector<float>(kRow, value), "constant");
  std::vector<float> spike(kRow, 0.0f);
  spike[100] = -3;
  spike[1500] = 2;
  if (GetParam().type != DType::kQ1_0) expect_close(spike, "spike");  // one bit: all weights are +-mean
}

TEST_P(RoundTrip, ZerosStayZeros) {
  for (float w : round_trip(GetParam().type, std::vector<float>(kRow, 0.0f))) ASSERT_EQ(w, 0.0f);
}

TEST_P(RoundTrip, PowersOfTwoPassThrough) {
  const std::vector<float> x = gaussian(0.5f, 8);
  std::vector<float> scaled(x);
  for (float& value : scaled) value *= 4;
  std::vector<float> wanted = round_trip(GetParam().type, x);
  for (float& value : wanted) value *= 4;
  EXPECT_EQ(round_trip(GetParam().type, scaled), wanted);
}

TEST_P(RoundTrip, ADecodedRowLosesNothingMore) {
  // Not every encoder returns the same blocks; none may drift.
  const std::vector<float> x = laplace(0.1f, 9);
  const std::vector<float> once = round_trip(GetParam().type, x);
  const std::vector<float> twice = round_trip(GetParam().type, once);
  EXPECT_LE(rms(difference(twice, once)), GetParam().gaussian_error * rms(x));
}

TEST_P(RoundTrip, ValuesBeyondTheScaleAreRefused) {
  const DType type = GetParam().type;
  if (type == DType::kF32 || type == DType::kBF16 || type == DType::kQ8_K || type == DType::kMXFP4) {
    expect_close(gaussian(3e37f, 10), "wide scale");
    return;
  }
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(type, kRow)));
  for (float large : {1e9f, -1e15f, 3e38f}) {
    std::vector<float> x = gaussian(1, 10);
    x[700] = large;
    const Result<void> encoded = encode_row(type, x, blocks.data());
    ASSERT_FALSE(encoded) << large;
    EXPECT_EQ(encoded.error().code, Code::kInvalidArgument);
    EXPECT_NE(encoded.error().message.find("value 700 is"), std::string::npos) << encoded.error().message;
  }
}

TEST_P(RoundTrip, NonFiniteInputIsNamed) {
  const DType type = GetParam().type;
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(type, kRow)));
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = gaussian(1, 11);
    x[1234] = bad;
    const Result<void> encoded = encode_row(type, x, blocks.data());
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().code, Code::kInvalidArgument);
    EXPECT_NE(encoded.error().message.find("value 1234 is"), std::string::npos) << encoded.error().message;
  }
}

TEST_P(RoundTrip, PartOfABlockIsRefused) {
  const int block = info(GetParam().type).block_weights;
  if (block == 1) return;
  const std::vector<float> x(static_cast<size_t>(block + block / 2), 1.0f);
  std::vector<std::byte> blocks(1024);
  const Result<void> encoded = encode_row(GetParam().type, x, blocks.data());
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().code, Code::kInvalidArgument);
  EXPECT_NE(encoded.error().message.find("multiple of " + std::to_string(block)), std::string::npos)
      << encoded.error().message;
}

INSTANTIATE_TEST_SUITE_P(Types, RoundTrip, ::testing::ValuesIn(kQualities),
                         [](const auto& param) { return std::string(name_of(param.param.type)); });

TEST(Codecs, EveryTypeWithWeightsAndNoOther) {
  std::set<DType> with_codec(std::begin(kCodecTypes), std::end(kCodecTypes));
  for (uint32_t id = 0; id < 100; ++id) {
    const std::optional<DType> type = dtype_from_id(id);
    if (!type) continue;
    const Codec* codec = find_codec(*type);
    EXPECT_EQ(codec != nullptr, with_codec.count(*type) == 1) << name_of(*type);
    EXPECT_TRUE(codec == nullptr || codec->type == *type) << name_of(*type);
  }
}

TEST(Codecs, EveryEncoderIsTestedHere) {
  for (DType type : kCodecTypes) {
    const bool tested = std::any_of(std::begin(kQualities), std::end(kQualities),
                                    [type](const Quality& quality) { return quality.type == type; });
    EXPECT_EQ(find_codec(type)->encode != nullptr, tested) << name_of(type);
  }
}

TEST(Codecs, TypesThatAreOnlyReadSaySo) {
  const std::vector<float> x(256, 1.0f);
  std::vector<std::byte> blocks(1024);
  for (DType type : {DType::kIQ2_XXS, DType::kIQ1_M, DType::kQ8_1, DType::kI32}) {
    const Result<void> encoded = encode_row(type, x, blocks.data());
    ASSERT_FALSE(encoded) << name_of(type);
    EXPECT_EQ(encoded.error().code, Code::kUnsupported);
  }
}

TEST(Codecs, AnEmptyRowIsARow) {
  EXPECT_TRUE(encode_row(DType::kQ4_K, {}, nullptr));
  decode_row(DType::kQ4_K, nullptr, 0, nullptr);
}

TEST(CodecsDeathTest, DecodingWhatCannotBeIsABug) {
  std::byte block[256] = {};
  float w[256];
  EXPECT_DEATH(decode_row(DType::kI32, block, 32, w), "holds no weights");
  EXPECT_DEATH(decode_row(DType::kQ4_K, block, 128, w), "part of a block");
}

}  // namespace
}  // namespace forebay
