#include "kernels/streams.h"

#include "core/ensure.h"
#include "kernels/activation.h"

namespace forebay {

void read_streams(KernelContext& ctx, int n_streams, TensorView<const float> gate,
                  TensorView<const float> normed, TensorView<float> x) {
  ENSURE(gate.cols == n_streams * x.cols && normed.cols == gate.cols, "read_streams shapes");
  const auto fn = ctx.isa() == Isa::kReference ? streams_detail::read_row_ref : streams_detail::read_row_avx2;
  ctx.pool().parallel_for(x.rows, 1 + 4096 / x.cols, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) fn(n_streams, x.cols, gate.row(t), normed.row(t), x.row(t));
  });
}

void write_streams(KernelContext& ctx, int n_streams, TensorView<const float> inject,
                   TensorView<const float> y, TensorView<float> streams) {
  ENSURE(streams.cols == n_streams * y.cols && inject.cols == n_streams, "write_streams shapes");
  const int64_t D = y.cols;
  ctx.pool().parallel_for(y.rows, 1 + 4096 / D, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int s = 0; s < n_streams; ++s) {
        const float m = 2.0f * sigmoid(inject.row(t)[s] / static_cast<float>(n_streams));
        float* to = streams.row(t) + s * D;
        const float* from = y.row(t);
        for (int64_t d = 0; d < D; ++d) to[d] += m * from[d];
      }
  });
}

}  // namespace forebay
