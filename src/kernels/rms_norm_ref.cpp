#include <cmath>

#include "kernels/rms_norm.h"

namespace forebay::rms_norm_detail {

void row_ref(const float* x, const float* weight, int64_t n, float inv_n, float eps, float scale, float* y) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double factor = scale / std::sqrt(sum * inv_n + eps);
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>(x[i] * factor * (weight != nullptr ? weight[i] : 1.0f));
}

}  // namespace forebay::rms_norm_detail
