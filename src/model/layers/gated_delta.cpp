#include "kernels/gated_delta.h"

#include <cmath>
#include <cstring>

#include "kernels/activation.h"
#include "kernels/causal_conv.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "model/layers/layers.h"

namespace forebay {
namespace {

/// All that reads x: qkv, z, and alpha and beta of every value head, [T][n_v]. qwen3next fuses the last two:
/// per key head, r betas and then r alphas.
void project(LayerContext& lc, const GatedDeltaWeights& w, TensorView<const float> x, int64_t T) {
  Scratch& s = lc.scratch;
  const TensorView<float> alpha = s.alpha.slice_rows(0, T);
  const TensorView<float> beta = s.beta.slice_rows(0, T);
  const TensorView<float> both = s.alpha_beta.slice_rows(0, T);
  MatmulOutput outputs[4] = {{w.qkv, s.qkv.slice_rows(0, T)}, {w.gate, s.z.slice_rows(0, T)}};
  if (w.alpha_beta.empty()) {
    outputs[2] = {w.alpha, alpha};
    outputs[3] = {w.beta, beta};
    matmul(lc.kernels, outputs, x);
    return;
  }
  outputs[2] = {w.alpha_beta, both};
  matmul(lc.kernels, std::span<const MatmulOutput>(outputs, 3), x);
  const GatedDeltaShape& shape = lc.config.gated_delta.shape;
  const int r = shape.n_v_heads / shape.n_k_heads;
  for (int64_t t = 0; t < T; ++t)
    for (int h = 0; h < shape.n_v_heads; ++h) {
      const float* group = both.row(t) + h / r * 2 * r;
      beta.row(t)[h] = group[h % r];
      alpha.row(t)[h] = group[r + h % r];
    }
}

}  // namespace

void gated_delta_layer(LayerContext& lc, const Batch& batch, const GatedDeltaWeights& w, int block,
                       TensorView<const float> x, TensorView<float> y) {
  KernelContext& kernels = lc.kernels;
  const GatedDeltaConfig& g = lc.config.gated_delta;
  const int64_t T = batch.n_rows;
  Scratch& s = lc.scratch;
  const TensorView<float> qkv = s.qkv.slice_rows(0, T);
  const TensorView<float> conv = s.conv.slice_rows(0, T);
  const TensorView<float> z = s.z.slice_rows(0, T);
  const TensorView<float> q = s.gd_q.slice_rows(0, T);
  const TensorView<float> k = s.gd_k.slice_rows(0, T);
  const TensorView<float> out = s.gd_out.slice_rows(0, T);

  project(lc, w, x, T);
  for (int64_t t = 0; t < T; ++t)
    for (int h = 0; h < g.shape.n_v_heads; ++h) {
      s.beta.row(t)[h] = sigmoid(s.beta.row(t)[h]);
      s.decay.row(t)[h] = std::exp(w.a[h] * softplus(s.alpha.row(t)[h] + w.dt[h]));
    }

  const TensorView<const float> taps(w.conv.data(), g.conv_kernel, g.conv_channels());
  for (const Batch::Part& part : batch.parts) {
    const TensorView<float> history(part.state->gated_delta(block).conv.data(), g.conv_kernel - 1,
                                    g.conv_channels());
    const TensorView<float> inputs = qkv.slice_rows(part.first_row, part.n_rows);
    if (WindowUndo* undo = part.state->undo())
      undo->record_conv(block, part.state->gated_delta(block).conv, inputs);
    causal_conv_silu(kernels, inputs, history, taps, 1, conv.slice_rows(part.first_row, part.n_rows));
    push_history(inputs, history);
  }

  const size_t key_bytes = static_cast<size_t>(g.key_width()) * sizeof(float);
  for (int64_t t = 0; t < T; ++t) {
    std::memcpy(q.row(t), conv.row(t), key_bytes);
    std::memcpy(k.row(t), conv.row(t) + g.key_width(), key_bytes);
  }
  const int64_t key_rows = T * g.shape.n_k_heads;
  const TensorView<float> q_heads(q.data, key_rows, g.shape.k_dim);
  const TensorView<float> k_heads(k.data, key_rows, g.shape.k_dim);
  l2_norm(kernels, q_heads, 1e-6f, 1.0f / std::sqrt(static_cast<float>(g.shape.k_dim)), q_heads);
  l2_norm(kernels, k_heads, 1e-6f, 1.0f, k_heads);

  const TensorView<float> v = conv.slice_cols(2 * g.key_width(), g.value_width());
  for (const Batch::Part& part : batch.parts) {
    const auto rows = [&](TensorView<float> m) { return m.slice_rows(part.first_row, part.n_rows); };
    if (part.recurrence != nullptr)
      part.recurrence->observe(block, part.first_cell, rows(k), rows(s.decay), rows(s.beta));
    if (WindowUndo* undo = part.state->undo())
      undo->record_delta(block, part.state->gated_delta(block).matrix, rows(k), rows(v), rows(s.decay),
                         rows(s.beta));
    gated_delta_rule(kernels, g.shape, rows(q), rows(k), rows(v), rows(s.decay), rows(s.beta),
                     part.state->gated_delta(block).matrix.data(), rows(out));
  }

  const TensorView<float> heads(out.data, T * g.shape.n_v_heads, g.shape.v_dim);
  rms_norm(kernels, heads, w.norm, lc.config.rms_eps, heads);
  if (g.sigmoid_gate)
    sigmoid_mul(kernels, out, z, out);
  else
    silu_mul(kernels, z, out, out);
  matmul(kernels, w.output, out, y);
}

}  // namespace forebay
