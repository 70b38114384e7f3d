#include "kernels/activation.h"
#include "kernels/rms_norm.h"
#include "model/arch/arch.h"

namespace forebay {

Result<void> run_prenorm_block(LayerContext& lc, const Batch& batch, const BlockWeights& w, int block,
                               const BlockWeights* next, TensorView<float> residual) {
  const float eps = lc.config.rms_eps;
  const TensorView<float> x = lc.scratch.input_TD.slice_rows(0, batch.n_rows);
  const TensorView<float> y = lc.scratch.output_TD.slice_rows(0, batch.n_rows);

  rms_norm(lc.kernels, residual, w.mixer_norm, eps, x);
  if (w.attention)
    attention_layer(lc, batch, *w.attention, block, /*block_cells=*/0, x, y);
  else
    gated_delta_layer(lc, batch, *w.gated_delta, block, x, y);
  add(lc.kernels, y, residual);

  rms_norm(lc.kernels, residual, w.ffn_norm, eps, x);
  const auto next_input = [&](TensorView<float> to) {
    rms_norm(lc.kernels, residual, next->ffn_norm, eps, to);
  };
  const LookAhead ahead{next != nullptr ? &next->ffn.router : nullptr, next_input};
  TRY(ffn_layer(lc, batch, w.ffn, block, next != nullptr ? &ahead : nullptr, x, y));
  add(lc.kernels, y, residual);
  return {};
}

Result<void> run_prenorm_blocks(LayerContext& lc, const Batch& batch, const Weights& w,
                                TensorView<float> residual) {
  for (const Batch::Part& part : batch.parts)
    embed(lc, w.embedding, part.tokens, residual.slice_rows(part.first_row, part.n_rows));
  for (int i = 0; i < lc.config.n_blocks; ++i)
    TRY(run_prenorm_block(lc, batch, w.blocks[i], i, i + 1 < lc.config.n_blocks ? &w.blocks[i + 1] : nullptr,
                          residual));
  return {};
}

}  // namespace forebay
