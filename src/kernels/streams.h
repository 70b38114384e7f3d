/// Hyper-connections: reading a sub-block's input from H residual streams and writing its output back.
#pragma once

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// x[t,d] = 1/H * sum_s sigmoid(gate[t,s,d]) * normed[t,s,d]
///
/// gate, normed  [T][H*D], stream-major. x_TD must not overlap them.
void read_streams(KernelContext& ctx, int n_streams, TensorView<const float> gate,
                  TensorView<const float> normed, TensorView<float> x_TD);

/// X[t,s,d] += 2 * sigmoid(inject[t,s] / H) * y[t,d]
void write_streams(KernelContext& ctx, int n_streams, TensorView<const float> inject_TH,
                   TensorView<const float> y_TD, TensorView<float> streams);

namespace streams_detail {
void read_row_ref(int n_streams, int64_t D, const float* gate, const float* normed, float* x);
void read_row_avx2(int n_streams, int64_t D, const float* gate, const float* normed, float* x);
}  // namespace streams_detail

}  // namespace forebay
