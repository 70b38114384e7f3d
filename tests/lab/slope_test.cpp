// Slopes and levels: their values, and that their errors are those that many repetitions show.
#include "lab/slope.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace forebay::lab {
namespace {

TEST(Slope, OfALineIsExact) {
  std::vector<double> x, y;
  for (int t = 100; t <= 120; ++t) {
    x.push_back(t);
    y.push_back(3 - 0.25 * t);
  }
  const Estimate slope = slope_of(x, y);
  EXPECT_NEAR(slope.value, -0.25, 1e-12);
  EXPECT_NEAR(slope.error, 0, 1e-12);
  EXPECT_EQ(slope.n, 21);
  EXPECT_NEAR(mean_of(y).value, 3 - 0.25 * 110, 1e-12);
}

/// The spread of the estimates over many draws, and the error that they claim on average.
struct Calibration {
  double spread, claimed;
};
Calibration calibration(size_t n, double persistence, bool of_mean) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const int n_draws = 2000;
  double sum = 0, squares = 0, claimed = 0;
  for (int draw = 0; draw < n_draws; ++draw) {
    std::vector<double> x, y;
    double noise = normal(random) / std::sqrt(1 - persistence * persistence);
    for (size_t t = 0; t < n; ++t) {
      x.push_back(static_cast<double>(t));
      y.push_back(noise);
      noise = persistence * noise + normal(random);
    }
    const Estimate estimate = of_mean ? mean_of(y) : slope_of(x, y);
    sum += estimate.value;
    squares += estimate.value * estimate.value;
    claimed += estimate.error;
  }
  return {std::sqrt(squares / n_draws - sum * sum / n_draws / n_draws), claimed / n_draws};
}

TEST(Slope, ErrorsAreWhatRepetitionsShow) {
  const Calibration white = calibration(200, 0, false), white_mean = calibration(200, 0, true);
  EXPECT_NEAR(white.claimed / white.spread, 1, 0.08);
  EXPECT_NEAR(white_mean.claimed / white_mean.spread, 1, 0.08);
  // Neighbours that are alike: plain least squares would claim about 0.58 of the spread.
  const Calibration alike = calibration(200, 0.5, false);
  EXPECT_GT(alike.claimed / alike.spread, 0.75);  // of a few lags, some is always missed
  EXPECT_LT(alike.claimed / alike.spread, 1.1);
}

TEST(Slope, TooFewPointsKnowNothing) {
  EXPECT_TRUE(std::isinf(slope_of(std::vector<double>{1, 2}, std::vector<double>{1, 2}).error));
  EXPECT_TRUE(std::isinf(mean_of(std::vector<double>{1}).error));
  EXPECT_TRUE(std::isnan(mean_of({}).value));
  EXPECT_TRUE(std::isnan(median_of({})));
  EXPECT_EQ(median_of(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median_of(std::vector<double>{4, 1, 2, 3}), 2.5);
}

}  // namespace
}  // namespace forebay::lab
