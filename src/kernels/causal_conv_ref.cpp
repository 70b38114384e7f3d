#include <cmath>

#include "kernels/causal_conv.h"

namespace forebay::causal_conv_detail {

void row_ref(const float* const* inputs, TensorView<const float> w, float* y) {
  for (int64_t c = 0; c < w.cols; ++c) {
    double sum = 0;
    for (int64_t k = 0; k < w.rows; ++k) sum += static_cast<double>(w.row(k)[c]) * inputs[k][c];
    y[c] = static_cast<float>(sum / (1.0 + std::exp(-sum)));
  }
}

}  // namespace forebay::causal_conv_detail
