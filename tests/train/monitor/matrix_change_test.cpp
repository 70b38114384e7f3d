// Spectra, angles and entries of matrices whose change is known.
#include "train/monitor/matrix_change.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

torch::Tensor random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({rows, columns});
}

/// Orthonormal columns.
torch::Tensor orthonormal(int64_t rows, int64_t columns, uint64_t seed) {
  return std::get<0>(torch::linalg_qr(random_matrix(rows, columns, seed).to(torch::kFloat64), "reduced"));
}

/// Singular values 10, 9, ... in directions that the seeds draw.
torch::Tensor with_spectrum(const torch::Tensor& u, const torch::Tensor& v) {
  const torch::Tensor s = torch::arange(10, 10 - u.size(1), -1, torch::kFloat64);
  return torch::matmul(u * s, v.t());
}

TEST(MatrixChange, NoChangeIsExactlyZero) {
  const torch::Tensor w = random_matrix(30, 20, 1);
  const MatrixChange change = compare(w, w.clone(), {});
  EXPECT_TRUE(change.identical);
  for (const double value : {change.changed, change.changed_bf16, change.update_norm, change.spectral_shift,
                             change.angle_left, change.angle_right, change.effective_rank})
    EXPECT_EQ(value, 0.0);
}

TEST(MatrixChange, ScalingShiftsTheSpectrumAndTurnsNothing) {
  const torch::Tensor w = random_matrix(30, 20, 2);
  for (const double c : {0.5, 1.01, 3.0}) {
    const MatrixChange change = compare(w, w * c, {.rank = 4});
    EXPECT_NEAR(change.spectral_shift, std::abs(c - 1), 1e-6) << c;
    EXPECT_LT(change.angle_left, 1e-5) << c;
    EXPECT_LT(change.angle_right, 1e-5) << c;
    EXPECT_NEAR(change.update_norm, std::abs(c - 1), 1e-6) << c;
  }
}

TEST(MatrixChange, AKnownRotationIsItsAngle) {
  const torch::Tensor u = orthonormal(12, 6, 3), v = orthonormal(9, 6, 4);
  for (const double phi : {1e-7, 1e-3, 0.4, 1.2, std::numbers::pi / 2}) {
    // The leading left direction turns towards one outside of all of them.
    torch::Tensor outside = random_matrix(12, 1, 5).to(torch::kFloat64);
    outside = outside - torch::matmul(u, torch::matmul(u.t(), outside));
    outside = outside / outside.norm();
    torch::Tensor turned = u.clone();
    turned.narrow(1, 0, 1).copy_(std::cos(phi) * u.narrow(1, 0, 1) + std::sin(phi) * outside);
    const MatrixChange change = compare(with_spectrum(u, v), with_spectrum(turned, v), {.rank = 3});
    EXPECT_NEAR(change.angle_left, phi, 1e-9) << phi;
    EXPECT_NEAR(change.angle_right, 0, 1e-9) << phi;
    EXPECT_NEAR(change.spectral_shift, 0, 1e-12) << phi;
  }
}

TEST(MatrixChange, APlantedBiasTurnsWhatRandomChangeOfTheSameNormDoesNot) {
  // Early layers under a held basis drift along one direction: rank one, small, off the leading directions.
  torch::manual_seed(6);
  const torch::Tensor u = orthonormal(80, 40, 7), v = orthonormal(60, 40, 8);
  const torch::Tensor s = torch::pow(torch::arange(1, 41, torch::kFloat64), -1.0);
  const torch::Tensor w = torch::matmul(u * s, v.t());
  torch::Tensor bias = torch::matmul(orthonormal(80, 1, 9), orthonormal(60, 1, 10).t());
  torch::Tensor noise = torch::randn({80, 60}, torch::kFloat64);
  const double size = 0.22;
  bias = bias * (size / bias.norm());
  noise = noise * (size / noise.norm());
  const MatrixChange biased = compare(w, w + bias, {.rank = 6}), random = compare(w, w + noise, {.rank = 6});
  EXPECT_NEAR(biased.update_norm, random.update_norm, 1e-9);
  EXPECT_GT(biased.angle_left, 1.5 * random.angle_left);
  EXPECT_NEAR(biased.effective_rank, 1, 1e-6);
  EXPECT_EQ(biased.rank_99, 1);
  EXPECT_GT(random.effective_rank, 30);
}

TEST(MatrixChange, EntriesAreCountedAsBf16SeesThem) {
  torch::Tensor w = torch::ones({10, 10}), now = w.clone();
  now[0][0] = 1.0f + 0x1p-20f;  // the same bf16
  now[0][1] = 1.1f;
  now[0][2] = -1.0f;
  const MatrixChange change = compare(w, now, {});
  EXPECT_DOUBLE_EQ(change.changed, 0.03);
  EXPECT_DOUBLE_EQ(change.changed_bf16, 0.02);
  torch::Tensor zeroes = torch::zeros({2, 2}), negative = zeroes.clone();
  negative[0][0] = -0.0f;
  EXPECT_DOUBLE_EQ(compare(zeroes, negative, {}).changed, 0.25);
}

TEST(MatrixChange, OverlapWithPrincipalEntries) {
  // Rank one, with a block of large entries: where they are, the principal mask is.
  const torch::Tensor u = torch::full({10, 1}, 0.1f), v = torch::full({1, 10}, 0.1f);
  u[0][0] = u[1][0] = v[0][0] = v[0][1] = 3;
  torch::manual_seed(11);
  const torch::Tensor w = torch::matmul(u, v) + torch::randn({10, 10}) * 1e-4;
  torch::Tensor inside = w.clone(), outside = w.clone(), everywhere = w * 1.5;
  inside.slice(0, 0, 2).slice(1, 0, 2).mul_(1.1);
  outside.slice(0, 5, 10).mul_(1.1);
  const MonitorOptions options{.rank = 1, .principal_rank = 0.1, .principal_alpha = 0.04};
  EXPECT_NEAR(compare(w, inside, options).principal_overlap, 25, 1e-9);
  EXPECT_EQ(compare(w, outside, options).principal_overlap, 0);
  EXPECT_NEAR(compare(w, everywhere, options).principal_overlap, 1, 1e-9);
}

TEST(MatrixChange, WhatCannotBeComputedIsNotANumber) {
  const torch::Tensor w = random_matrix(8, 8, 12);
  torch::Tensor broken = w.clone();
  broken[0][0] = std::nanf("");
  EXPECT_TRUE(std::isnan(compare(w, broken, {}).angle_left));
  const MatrixChange large = compare(w, w * 2, {.most_elements = 10});
  EXPECT_TRUE(std::isnan(large.spectral_shift));
  EXPECT_EQ(large.changed_bf16, 1);
}

}  // namespace
}  // namespace forebay::train
