// How far the receiver's rows are from the sender's, against the table of the trainer's specification:
// Gaussian rows, groups of 32, no basis learned.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support.h"
#include "train/wire/basis.h"
#include "train/wire/quantizer.h"

namespace forebay::train {
namespace {

using testing::codec_of;
using testing::default_codec;
using testing::error_energy;
using testing::gaussian;

constexpr int64_t kEnergyWidth = 1536;

double rounding_energy(const std::string& name, int bits) {
  return error_energy(*codec_of({.name = name, .bits = bits}, kEnergyWidth), gaussian(128, kEnergyWidth), 2);
}

TEST(ErrorEnergy, OfRounding) {
  const struct {
    int bits;
    double at_random, to_nearest;
  } table[] = {{1, 4.70, 2.92}, {2, 0.412, 0.207}, {3, 0.0754, 0.0377}, {4, 0.0164, 0.0082}, {8, 6e-5, 3e-5}};
  for (const auto& row : table) {
    const double sr = rounding_energy("sr", row.bits);
    const double rn = rounding_energy("rn", row.bits);
    std::printf("b=%d: at random %.3g, to nearest %.3g\n", row.bits, sr, rn);
    EXPECT_NEAR(sr, row.at_random, 0.02 * row.at_random) << row.bits;
    EXPECT_NEAR(rn, row.to_nearest, 0.02 * row.to_nearest) << row.bits;
  }
}

TEST(ErrorEnergy, OfDeletionWhateverTheSpectrum) {
  const std::unique_ptr<Codec> codec = default_codec("prf", kEnergyWidth);
  for (const double alpha : {0.0, 1.0, 2.0}) {
    torch::Tensor scale =
        torch::arange(1, kEnergyWidth + 1, torch::kDouble).pow(-alpha / 2).to(torch::kFloat);
    torch::manual_seed(4);
    const torch::Tensor rotation =
        std::get<0>(torch::linalg_qr(torch::randn({kEnergyWidth, 256}), "reduced"));
    // Energy along directions that are not coordinates.
    const torch::Tensor x = (torch::randn({32, 256}) * scale.slice(0, 0, 256)).matmul(rotation.t());
    const double energy = error_energy(*codec, x, 400);
    std::printf("prf, spectrum i^-%.0f: %.2f\n", alpha, energy);
    EXPECT_NEAR(energy, 1536.0 / 77 - 1, 0.5) << alpha;
  }
}

TEST(ErrorEnergy, OfDeletionThenRounding) {
  const double energy =
      error_energy(*codec_of({.name = "prf-sr", .bits = 2}, kEnergyWidth), gaussian(64, kEnergyWidth), 20);
  std::printf("prf-sr k=493 b=2: %.3f\n", energy);
  EXPECT_NEAR(energy, 1536.0 / 493 * 1.412 - 1, 0.05);
}

TEST(ErrorEnergy, OfBasisAndResidualAtARandomBasis) {
  const torch::Tensor x = gaussian(128, kEnergyWidth);
  const std::unique_ptr<Codec> matched = default_codec("frlr", kEnergyWidth);
  const std::unique_ptr<Codec> unbiased = default_codec("frlr-unbiased", kEnergyWidth);
  const std::unique_ptr<Codec> held = default_codec("powersgd", kEnergyWidth);
  const double c = captured_energy(x, matched->basis()->active(0, torch::kCPU));
  EXPECT_NEAR(c, 48.0 / 1536, 0.004);
  const double r = 28.0 / 1536;
  const double of_matched = error_energy(*matched, x, 30);
  const double of_unbiased = error_energy(*unbiased, x, 30);
  std::printf("frlr %.3f, frlr-unbiased %.1f, captured %.4f\n", of_matched, of_unbiased, c);
  EXPECT_NEAR(of_matched, 2 * (1 - c) * (1 - std::sqrt(r)), 0.02);
  EXPECT_NEAR(of_unbiased, (1 - c) * (1 / r - 1), 1.0);
  EXPECT_NEAR(error_energy(*held, x, 1), 1 - captured_energy(x, held->basis()->active(0, torch::kCPU)), 1e-3);
}

TEST(Quantizer, RowsHoldTheBitsOfTensors) {
  torch::manual_seed(1);
  for (const bool stochastic : {true, false})
    for (int bits = 1; bits <= 8; ++bits)
      for (const auto& [width, group] :
           {std::pair<int64_t, int64_t>{1, 32}, {100, 32}, {1024, 32}, {300, 130}}) {
        const CodecOptions options{.bits = bits, .group = group};
        Quantizer quantizer(options, stochastic);
        torch::Tensor x = torch::randn({9, width});
        x[1] *= 1e-30;
        x[2] *= 1e30;
        x[3].zero_();
        x[4] *= 1e-35;                // counts as zero
        x[5] = x[5].sign() * 3.3e38;  // the scale is infinite
        x[6][width / 2] = std::nan("");
        x[7][0] = -std::numeric_limits<float>::infinity();
        const WireKey key{.seed = 5, .step = 3, .boundary = 1, .first_row = 70};
        const Quantizer::Coded rows = quantizer.quantize(x, key, Leg::kBackward);
        const Quantizer::Coded tensors = quantizer.quantize_with_tensors(x, key, Leg::kBackward);
        // Any NaN is a NaN.
        EXPECT_TRUE(torch::allclose(rows.scales_NG, tensors.scales_NG, 0, 0, /*equal_nan=*/true))
            << bits << " " << width;
        const torch::Tensor finite =
            rows.scales_NG.to(torch::kFloat).isfinite().repeat_interleave(group, 1).slice(1, 0, width);
        EXPECT_TRUE(torch::equal(rows.codes_NW.masked_select(finite), tensors.codes_NW.masked_select(finite)))
            << bits << " " << width;
        const torch::Tensor back = quantizer.dequantize(rows),
                            same = quantizer.dequantize_with_tensors(tensors);
        EXPECT_TRUE(torch::equal(back.isnan(), same.isnan())) << bits << " " << width;
        EXPECT_TRUE(torch::equal(back.nan_to_num(), same.nan_to_num())) << bits << " " << width;
        EXPECT_FALSE(back.isfinite().logical_and(finite.logical_not()).any().item<bool>());
      }
}

TEST(Quantizer, TheScaleIsNeverBelowTheLargest) {
  torch::Tensor x = torch::randn({200000}).abs();
  x[0] = 0;
  x[1] = 1e-40;
  x[2] = 3.3e38;
  const torch::Tensor up = bf16_at_least(x).to(torch::kFloat);
  EXPECT_TRUE((up >= x).all().item<bool>());
  // And it is the next one: bf16 holds 8 bits.
  EXPECT_TRUE((up.slice(0, 2) <= x.slice(0, 2) * (1 + 0x1p-7)).all().item<bool>());
  EXPECT_EQ(up[0].item<float>(), 0);
  const torch::Tensor exact = torch::tensor({1.0f, 0.5f, 3.0f});
  EXPECT_TRUE(torch::equal(bf16_at_least(exact).to(torch::kFloat), exact));
  // To the nearest would have been below for about half of them.
  const double below = (x.to(torch::kBFloat16).to(torch::kFloat) < x).to(torch::kFloat).mean().item<double>();
  EXPECT_NEAR(below, 0.5, 0.02);
}

TEST(Quantizer, TheEndsOfAGroupAreExactAndNothingIsClamped) {
  for (const std::string name : {"sr", "rn"})
    for (int bits = 1; bits <= 8; ++bits) {
      torch::Tensor x = torch::zeros({1, 32});
      x[0][3] = 2.5f;  // exact in bf16
      x[0][7] = -2.5f;
      const torch::Tensor seen = codec_of({.name = name, .bits = bits}, 32)->view(x, {}, nullptr);
      EXPECT_EQ(seen[0][3].item<float>(), 2.5f) << name << bits;
      EXPECT_EQ(seen[0][7].item<float>(), -2.5f) << name << bits;
    }
}

TEST(Quantizer, TinyGroupsAreZeroAndGroupsStayApart) {
  torch::Tensor x = torch::full({1, 64}, 1e-38f);
  x.slice(1, 32).fill_(7);
  const torch::Tensor seen = codec_of({.name = "sr", .bits = 2}, 64)->view(x, {}, nullptr);
  EXPECT_TRUE((seen.slice(1, 0, 32) == 0).all().item<bool>());
  EXPECT_TRUE((seen.slice(1, 32) == 7).all().item<bool>());
}

TEST(Quantizer, AtRandomAndToNearestDifferOnlyInTheCodes) {
  const torch::Tensor x = gaussian(50, 96);
  for (const int bits : {1, 2, 4, 8}) {
    CodecOptions options{.bits = bits};
    Quantizer at_random(options, true);
    Quantizer to_nearest(options, false);
    const Quantizer::Coded a = at_random.quantize(x, {}, Leg::kForward);
    const Quantizer::Coded b = to_nearest.quantize(x, {}, Leg::kForward);
    EXPECT_TRUE(torch::equal(a.scales_NG, b.scales_NG));
    const torch::Tensor apart = (a.codes_NW.to(torch::kInt) - b.codes_NW.to(torch::kInt)).abs();
    EXPECT_EQ(apart.max().item<int>(), 1);
  }
}

}  // namespace
}  // namespace forebay::train
