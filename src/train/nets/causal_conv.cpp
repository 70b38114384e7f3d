#include "train/nets/causal_conv.h"

namespace forebay::train {

torch::Tensor causal_conv_silu(const torch::Tensor& x_BTC, const torch::Tensor& taps, int64_t dilation) {
  const int64_t T = x_BTC.size(1), K = taps.size(-1), before = dilation * (K - 1);
  const torch::Tensor padded = torch::constant_pad_nd(x_BTC, {0, 0, before, 0});
  const std::vector<torch::Tensor> by_tap = taps.squeeze(1).unbind(-1);
  torch::Tensor sum;
  for (int64_t j = 0; j < K; ++j) {
    const torch::Tensor term = padded.narrow(1, j * dilation, T) * by_tap[static_cast<size_t>(j)];
    sum = j == 0 ? term : sum + term;
  }
  return torch::silu(sum);
}

}  // namespace forebay::train
