#include "lab/slope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace forebay::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The long-run sum of squares of u: Newey-West.
double long_run_sum(std::span<const double> u) {
  const size_t n = u.size();
  const auto lags = static_cast<size_t>(std::floor(4 * std::pow(static_cast<double>(n) / 100, 2.0 / 9)));
  double sum = 0;
  for (const double value : u) sum += value * value;
  for (size_t lag = 1; lag <= lags && lag < n; ++lag) {
    double product = 0;
    for (size_t t = lag; t < n; ++t) product += u[t] * u[t - lag];
    sum += 2 * (1 - static_cast<double>(lag) / static_cast<double>(lags + 1)) * product;
  }
  return std::max(sum, 0.0);
}

double plain_mean(std::span<const double> y) {
  double sum = 0;
  for (const double value : y) sum += value;
  return sum / static_cast<double>(y.size());
}

}  // namespace

Estimate mean_of(std::span<const double> y) {
  const auto n = static_cast<double>(y.size());
  if (y.empty()) return {std::numeric_limits<double>::quiet_NaN(), kInfinity, 0};
  const double mean = plain_mean(y);
  if (y.size() < 2) return {mean, kInfinity, 1};
  std::vector<double> u;
  for (const double value : y) u.push_back(value - mean);
  return {mean, std::sqrt(long_run_sum(u) * n / (n - 1)) / n, static_cast<int64_t>(y.size())};
}

Estimate slope_of(std::span<const double> x, std::span<const double> y) {
  const size_t n = std::min(x.size(), y.size());
  if (n == 0) return {std::numeric_limits<double>::quiet_NaN(), kInfinity, 0};
  const double x_mean = plain_mean(x.first(n)), y_mean = plain_mean(y.first(n));
  double xx = 0, xy = 0;
  for (size_t t = 0; t < n; ++t) {
    xx += (x[t] - x_mean) * (x[t] - x_mean);
    xy += (x[t] - x_mean) * (y[t] - y_mean);
  }
  if (n < 3 || xx == 0) return {xx == 0 ? 0 : xy / xx, kInfinity, static_cast<int64_t>(n)};
  const double slope = xy / xx;
  std::vector<double> u;
  for (size_t t = 0; t < n; ++t) u.push_back((x[t] - x_mean) * (y[t] - y_mean - slope * (x[t] - x_mean)));
  const auto count = static_cast<double>(n);
  return {slope, std::sqrt(long_run_sum(u) * count / (count - 2)) / xx, static_cast<int64_t>(n)};
}

double median_of(std::span<const double> y) {
  if (y.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(y.begin(), y.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace forebay::lab
