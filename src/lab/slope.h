/// Levels and slopes of a noisy series, with errors that allow for neighbours being alike.
#pragma once

#include <cstdint>
#include <span>

namespace forebay::lab {

struct Estimate {
  double value = 0;
  double error = 0;  // standard error, heteroskedasticity and autocorrelation consistent
  int64_t n = 0;     // points it is from

  /// What a test at 5 % (two-sided) would find in four of five tries: (1.96 + 0.84) errors.
  double minimum_detectable() const { return 2.8 * error; }
  double low() const { return value - 1.96 * error; }
  double high() const { return value + 1.96 * error; }
};

/// Bartlett weights over floor(4 (n / 100)^(2/9)) lags. Source: Newey & West 1987, Econometrica 55(3).
/// Fewer than two points have an infinite error.
Estimate mean_of(std::span<const double> y);
/// Least squares of y over x. Fewer than three points, or one x for all, have an infinite error.
Estimate slope_of(std::span<const double> x, std::span<const double> y);

double median_of(std::span<const double> y);  // NaN when empty

}  // namespace forebay::lab
