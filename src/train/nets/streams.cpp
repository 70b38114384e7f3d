#include "train/nets/streams.h"

namespace forebay::train {

StreamWeights make_stream_weights(ParameterMaker& maker, const std::string& name, int64_t n_streams,
                                  int64_t d_model, int64_t low_rank, bool has_inject) {
  const int64_t wide = n_streams * d_model;
  StreamWeights w;
  w.norm = maker.make(name + ".hc_norm.weight", {wide}, Init::constant(0));
  w.down = maker.make(name + ".input_mix_weight_down.weight", {low_rank, wide}, Init::matrix(wide));
  w.up = maker.make(name + ".input_mix_weight_up.weight", {wide, low_rank}, Init::matrix(low_rank));
  if (has_inject)
    w.inject = maker.make(name + ".block_inject_weight.weight", {n_streams, wide}, Init::matrix(wide));
  return w;
}

StreamRead read_streams(const StreamWeights& w, const torch::Tensor& x_BTW, int64_t n_streams, double eps,
                        Precision precision) {
  const auto streams = static_cast<double>(n_streams);
  const torch::Tensor x = x_BTW.unflatten(-1, {n_streams, x_BTW.size(-1) / n_streams});
  const torch::Tensor normed = rms_norm(x, (w.norm + 1).view({n_streams, -1}), eps);
  const torch::Tensor wide = normed.flatten(-2);
  const torch::Tensor low = torch::silu(linear(wide, w.down, precision) / streams);
  const torch::Tensor gate = torch::sigmoid(linear(low, w.up, precision)).view_as(normed);
  StreamRead read{(gate * normed).mean(-2), {}};
  if (w.inject.defined()) read.weight = 2 * torch::sigmoid(linear(wide, w.inject, precision) / streams);
  return read;
}

torch::Tensor write_streams(const torch::Tensor& x_BTW, const torch::Tensor& weight,
                            const torch::Tensor& y_BTD) {
  return x_BTW + (weight.unsqueeze(-1) * y_BTD.unsqueeze(-2)).flatten(-2);
}

}  // namespace forebay::train
