#include <cmath>

#include "kernels/streams.h"

namespace forebay::streams_detail {

void read_row_ref(int n_streams, int64_t D, const float* gate, const float* normed, float* x) {
  for (int64_t d = 0; d < D; ++d) {
    double sum = 0;
    for (int s = 0; s < n_streams; ++s)
      sum += 1.0 / (1.0 + std::exp(-static_cast<double>(gate[s * D + d]))) * normed[s * D + d];
    x[d] = static_cast<float>(sum / n_streams);
  }
}

}  // namespace forebay::streams_detail
