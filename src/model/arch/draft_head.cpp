#include <cstring>

#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "model/arch/arch.h"

namespace forebay {

Result<void> run_draft_block(LayerContext& lc, const Batch& batch, const Weights& w,
                             TensorView<const float> hidden, TensorView<float> residual) {
  const ModelConfig& c = lc.config;
  const MtpWeights& m = *w.mtp;
  const int H = c.streams.n_streams;
  const int64_t D = c.d_model;
  const int64_t T = batch.n_rows;
  Scratch& s = lc.scratch;

  // [ RMS(embedding of the next token) ; RMS(hidden stream) ] for each stream, projected separately: pooling
  // the streams first would throw away what the head was trained on.
  const TensorView<float> embedded = s.input_TD.slice_rows(0, T);
  embed(lc, w.embedding, batch.parts[0].tokens, embedded);
  rms_norm(lc.kernels, embedded, m.embedding_norm, c.rms_eps, embedded);
  const TensorView<float> pairs(s.draft_pairs.data, T * H, 2 * D);
  rms_norm(lc.kernels, TensorView<const float>(hidden.data, T * H, D), m.hidden_norm, c.rms_eps,
           pairs.slice_cols(D, D));
  for (int64_t r = 0; r < T * H; ++r) std::memcpy(pairs.row(r), embedded.row(r / H), D * sizeof(float));
  matmul(lc.kernels, m.project, pairs, TensorView<float>(residual.data, T * H, D));

  if (c.family == Family::kQwen4Exp)
    return run_hyper_block(lc, batch, m.block, c.n_blocks, /*next=*/nullptr, /*block_cells=*/0, residual);
  return run_prenorm_block(lc, batch, m.block, c.n_blocks, /*next=*/nullptr, residual);
}

}  // namespace forebay
