#include "kernels/activation.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/streams.h"
#include "model/layers/layers.h"

namespace forebay {

void read_hyper_connection(LayerContext& lc, const HyperConnectionWeights& w, TensorView<const float> streams,
                           TensorView<float> x) {
  KernelContext& kernels = lc.kernels;
  const int n_streams = lc.config.streams.n_streams;
  const int64_t T = streams.rows;
  const int64_t D = lc.config.d_model;
  Scratch& s = lc.scratch;
  const TensorView<float> normed = s.normed_TW.slice_rows(0, T);
  const TensorView<float> low = s.low_TR.slice_rows(0, T);
  const TensorView<float> gate = s.gate_TW.slice_rows(0, T);

  // Statistics per stream, weights over the full width.
  rms_norm(kernels, TensorView<const float>(streams.data, T * n_streams, D), w.norm, lc.config.rms_eps,
           TensorView<float>(normed.data, T * n_streams, D));
  matmul(kernels, w.down, normed, low);
  silu_scaled(kernels, 1.0f / static_cast<float>(n_streams), low);
  matmul(kernels, w.up, low, gate);
  read_streams(kernels, n_streams, gate, normed, x);
  if (!w.inject.empty()) matmul(kernels, w.inject, normed, s.inject_TH.slice_rows(0, T));
}

void write_hyper_connection(LayerContext& lc, TensorView<const float> y, TensorView<float> streams) {
  write_streams(lc.kernels, lc.config.streams.n_streams, lc.scratch.inject_TH.slice_rows(0, y.rows), y,
                streams);
}

}  // namespace forebay
