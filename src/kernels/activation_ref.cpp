#include <cmath>

#include "kernels/activation.h"

namespace forebay::activation_detail {
namespace {

double sigmoid64(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace

void silu_mul_ref(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(gate[i] * sigmoid64(gate[i]) * up[i]);
}

void sigmoid_mul_ref(const float* x, const float* gate, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] * sigmoid64(gate[i]));
}

void silu_scaled_ref(float scale, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]) * scale;
    x[i] = static_cast<float>(v * sigmoid64(v));
  }
}

}  // namespace forebay::activation_detail
