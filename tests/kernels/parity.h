/// Comparing a fast kernel with its reference: random inputs, computed tolerances, the worst element printed.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/thread_pool.h"
#include "kernels/context.h"

namespace forebay::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  std::vector<float> normal(int64_t n, float sigma = 1.0f) {
    std::normal_distribution<float> d(0.0f, sigma);
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = d(engine_);
    return v;
  }
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

/// A buffer whose data starts `offset` floats past an aligned address.
struct Misaligned {
  Misaligned(const std::vector<float>& v, int64_t offset) : storage(v.size() + 16), offset(offset) {
    std::copy(v.begin(), v.end(), data());
  }
  float* data() { return storage.data() + offset; }
  std::vector<float> storage;
  int64_t offset;
};

/// |fast - reference| <= bound[i] everywhere; NaN must meet NaN.
inline void expect_close(const std::vector<float>& reference, const std::vector<float>& fast,
                         const std::vector<double>& bound, const char* what) {
  ASSERT_EQ(reference.size(), fast.size());
  size_t worst = 0;
  double worst_ratio = -1;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (std::isnan(reference[i]) || std::isnan(fast[i])) {
      EXPECT_EQ(std::isnan(reference[i]), std::isnan(fast[i])) << what << " element " << i;
      continue;
    }
    if (reference[i] == fast[i]) continue;
    const double ratio = std::fabs(static_cast<double>(reference[i]) - fast[i]) / bound[i];
    if (!(ratio <= worst_ratio)) {
      worst_ratio = ratio;
      worst = i;
    }
  }
  EXPECT_LE(worst_ratio, 1.0) << what << " element " << worst << ": reference " << reference[worst]
                              << ", fast " << fast[worst] << ", bound " << bound[worst];
}

inline std::vector<double> uniform_bound(size_t n, double bound) {
  return std::vector<double>(n, bound);
}

inline constexpr double kEps = std::numeric_limits<float>::epsilon();

}  // namespace forebay::testing
