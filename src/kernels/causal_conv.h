/// Causal depthwise convolution with a carried history.
#pragma once

#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// y[t,c] = silu( sum_{k<K} w[k,c] * u(t - dilation * (K-1-k), c) )
///
/// u_TC      this span's inputs. history_RC  the R = dilation*(K-1) inputs before them, oldest first (zeros
/// before the sequence start); left unchanged: push_history() moves it on.
/// w_KC      taps by channel, the last tap is the current token. Accumulates k ascending, f64 in the
/// reference.
void causal_conv_silu(KernelContext& ctx, TensorView<const float> u_TC, TensorView<const float> history_RC,
                      TensorView<const float> w_KC, int dilation, TensorView<float> y_TC);

/// history <- the last R rows of (history, u).
void push_history(TensorView<const float> u_TC, TensorView<float> history_RC);

namespace causal_conv_detail {
/// One output row from its K input rows.
void row_ref(const float* const* inputs, TensorView<const float> w_KC, float* y);
void row_avx2(const float* const* inputs, TensorView<const float> w_KC, float* y);
inline constexpr int kMaxTaps = 16;
}  // namespace causal_conv_detail

}  // namespace forebay
