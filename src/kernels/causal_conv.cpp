#include "kernels/causal_conv.h"

#include <algorithm>
#include <cstring>

#include "core/ensure.h"

namespace forebay {

void causal_conv_silu(KernelContext& ctx, TensorView<const float> u, TensorView<const float> history,
                      TensorView<const float> w, int dilation, TensorView<float> y) {
  const int64_t K = w.rows;
  ENSURE(K <= causal_conv_detail::kMaxTaps && history.rows == dilation * (K - 1), "causal_conv shapes");
  ENSURE(u.cols == w.cols && history.cols == w.cols && y.cols == w.cols && y.rows == u.rows,
         "causal_conv shapes");
  const auto fn = ctx.isa() == Isa::kReference ? causal_conv_detail::row_ref : causal_conv_detail::row_avx2;
  ctx.pool().parallel_for(u.rows, 1 + 4096 / u.cols, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const float* inputs[causal_conv_detail::kMaxTaps];
      for (int64_t k = 0; k < K; ++k) {
        const int64_t from = t - dilation * (K - 1 - k);
        inputs[k] = from >= 0 ? u.row(from) : history.row(history.rows + from);
      }
      fn(inputs, w, y.row(t));
    }
  });
}

void push_history(TensorView<const float> u, TensorView<float> history) {
  const int64_t kept = std::max<int64_t>(0, history.rows - u.rows);
  const size_t row = static_cast<size_t>(history.cols) * sizeof(float);
  for (int64_t r = 0; r < kept; ++r) std::memmove(history.row(r), history.row(r + history.rows - kept), row);
  for (int64_t r = kept; r < history.rows; ++r)
    std::memcpy(history.row(r), u.row(u.rows - history.rows + r), row);
}

}  // namespace forebay
