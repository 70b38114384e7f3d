#include <cstring>

#include "model/arch/arch.h"

namespace forebay {

Result<void> run_hyper_block(LayerContext& lc, const Batch& batch, const BlockWeights& w, int block,
                             const BlockWeights* next, int block_cells, TensorView<float> streams) {
  const TensorView<float> x = lc.scratch.input_TD.slice_rows(0, batch.n_rows);
  const TensorView<float> y = lc.scratch.output_TD.slice_rows(0, batch.n_rows);

  if (w.ngram) ngram_injection(lc, batch, *w.ngram, streams);

  read_hyper_connection(lc, w.mixer_streams, streams, x);
  if (w.attention)
    attention_layer(lc, batch, *w.attention, block, block_cells, x, y);
  else
    gated_delta_layer(lc, batch, *w.gated_delta, block, x, y);
  write_hyper_connection(lc, y, streams);

  read_hyper_connection(lc, w.ffn_streams, streams, x);
  const auto next_input = [&](TensorView<float> to) {
    HyperConnectionWeights read = next->ffn_streams;
    read.inject = {};  // this block's gates are still to be used
    read_hyper_connection(lc, read, streams, to);
  };
  const LookAhead ahead{next != nullptr ? &next->ffn.router : nullptr, next_input};
  TRY(ffn_layer(lc, batch, w.ffn, block, next != nullptr ? &ahead : nullptr, x, y));
  write_hyper_connection(lc, y, streams);
  return {};
}

Result<void> run_hyper_blocks(LayerContext& lc, const Batch& batch, const Weights& w,
                              TensorView<float> streams) {
  const ModelConfig& c = lc.config;
  if (c.ngram.block >= 0) ngram_read_ahead(lc, batch, *w.blocks[c.ngram.block].ngram);
  // Every stream starts as a whole copy of the embedding.
  const TensorView<float> embedded = lc.scratch.input_TD;
  for (const Batch::Part& part : batch.parts)
    embed(lc, w.embedding, part.tokens, embedded.slice_rows(part.first_row, part.n_rows));
  for (int64_t t = 0; t < batch.n_rows; ++t)
    for (int s = 0; s < c.streams.n_streams; ++s)
      std::memcpy(streams.row(t) + static_cast<int64_t>(s) * c.d_model, embedded.row(t),
                  c.d_model * sizeof(float));

  for (int i = 0; i < c.n_blocks; ++i)
    TRY(run_hyper_block(lc, batch, w.blocks[i], i, i + 1 < c.n_blocks ? &w.blocks[i + 1] : nullptr,
                        c.block_cells[i], streams));
  return {};
}

}  // namespace forebay
