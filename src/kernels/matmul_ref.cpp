#include "kernels/matmul.h"
#include "quant/quant.h"

namespace forebay::matmul_detail {

void task_ref(const MatrixView& w, int64_t n0, int64_t n1, RowSet<const float> x, int64_t T, RowSet<float> y,
              float* scratch) {
  for (int64_t n = n0; n < n1; ++n) {
    decode_row(w.type, w.row(n), w.n_cols, scratch);
    for (int64_t t = 0; t < T; ++t) {
      const float* x_K = x.row(t);
      double sum = 0;
      for (int64_t k = 0; k < w.n_cols; ++k) sum += static_cast<double>(scratch[k]) * x_K[k];
      y.row(t)[n] = static_cast<float>(sum);
    }
  }
}

}  // namespace forebay::matmul_detail
