#include "train/wire/orthonormal.h"

#include <cmath>
#include <vector>

#include "core/ensure.h"
#include "train/wire/prf.h"

namespace forebay::train {
namespace {

// What is left of a column that the others span, relative to its length: rounding errors.
constexpr double kNothingLeft = 1e-10;

/// Four sums side by side: a fixed order that the compiler can still overlap.
double dot(const double* a, const double* b, int64_t n) {
  double sums[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Exact in f64 on every machine: no logarithm, no cosine.
void fill_from(uint64_t stream, double* column, int64_t n) {
  for (int64_t i = 0; i < n; ++i) column[i] = static_cast<double>(prf_at(stream, i) >> 11) * 0x1p-52 - 1;
}

/// `column` without the directions of the `n_before` columns in front of `first`; false if nothing is left.
bool make_orthonormal(const double* first, int64_t n_before, double* column, int64_t n) {
  const double length = std::sqrt(dot(column, column, n));
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t k = 0; k < n_before; ++k) {
      const double* const other = first + k * n;
      const double along = dot(other, column, n);
      for (int64_t i = 0; i < n; ++i) column[i] -= along * other[i];
    }
  const double left = std::sqrt(dot(column, column, n));
  if (!(left > kNothingLeft * length)) return false;
  for (int64_t i = 0; i < n; ++i) column[i] /= left;
  return true;
}

}  // namespace

torch::Tensor orthonormal(const torch::Tensor& y_WR, uint64_t spare) {
  ENSURE(y_WR.size(1) <= y_WR.size(0), "more directions than dimensions");
  torch::Tensor q_RW = y_WR.detach().to(torch::kCPU, torch::kDouble).t().contiguous().clone();
  double* const data = q_RW.data_ptr<double>();
  const int64_t n = q_RW.size(1);
  for (int64_t k = 0; k < q_RW.size(0); ++k) {
    uint64_t stream = prf_absorb(spare, k);
    while (!make_orthonormal(data, k, data + k * n, n)) {
      fill_from(stream, data + k * n, n);
      stream = prf_absorb(stream, 1);
    }
  }
  return q_RW.t().contiguous().to(torch::kFloat);
}

torch::Tensor random_frame(uint64_t stream, int64_t width, int64_t rank) {
  torch::Tensor y_RW = torch::empty({rank, width}, torch::kDouble);
  for (int64_t k = 0; k < rank; ++k)
    fill_from(prf_absorb(stream, k), y_RW.data_ptr<double>() + k * width, width);
  return orthonormal(y_RW.t(), prf_absorb(stream, rank));
}

}  // namespace forebay::train
