#pragma once

#include <torch/torch.h>

namespace forebay::train {

/// silu of a filter over time, per channel: y[t] = silu(sum_j taps[.., j] x[t - dilation (K - 1 - j)]), zeros
/// before the start. x [B, T, C], taps [C, 1, K].
torch::Tensor causal_conv_silu(const torch::Tensor& x_BTC, const torch::Tensor& taps, int64_t dilation);

}  // namespace forebay::train
