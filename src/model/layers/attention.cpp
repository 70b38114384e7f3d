#include "kernels/attention.h"

#include <algorithm>
#include <cstring>

#include "kernels/activation.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "model/layers/layers.h"

namespace forebay {
namespace {

/// Heads of T rows as T * n_heads rows of head_dim.
TensorView<float> as_heads(TensorView<float> x, int64_t head_dim) {
  return {x.data, x.rows * x.cols / head_dim, head_dim};
}

/// Per head, attn_q's rows are the query and then its gate.
void split_query_and_gate(TensorView<const float> both, int n_heads, int head_dim, TensorView<float> q,
                          TensorView<float> gate) {
  const size_t bytes = static_cast<size_t>(head_dim) * sizeof(float);
  for (int64_t t = 0; t < both.rows; ++t)
    for (int h = 0; h < n_heads; ++h) {
      const float* from = both.row(t) + 2 * h * head_dim;
      std::memcpy(q.row(t) + h * head_dim, from, bytes);
      std::memcpy(gate.row(t) + h * head_dim, from + head_dim, bytes);
    }
}

/// Stores this part's raw index keys and pools every block that its tokens complete: the mean of the block's
/// raw keys, normed, rotated at the block's first cell.
void append_index_keys(LayerContext& lc, const Batch::Part& part, const IndexerWeights& w, int block_cells,
                       TensorView<const float> raw_TI, AttentionState& state) {
  const int dim = lc.config.indexer.head_dim;
  const int64_t end = part.first_cell + part.n_rows;
  const int64_t first_block = part.first_cell / block_cells;
  const int64_t end_block = end / block_cells;
  state.n_coded = std::min(state.n_coded, first_block);
  const auto raw_key = [&](int64_t cell) {
    return cell >= part.first_cell ? raw_TI.row(part.first_row + cell - part.first_cell)
                                   : state.raw.data() + cell % AttentionState::kRawRing * dim;
  };
  if (end_block > first_block) {
    TensorView<float> pooled(state.pooled.data() + first_block * dim, end_block - first_block, dim);
    std::vector<int64_t>& positions = lc.scratch.block_positions;
    positions.clear();
    for (int64_t b = first_block; b < end_block; ++b) {
      float* mean = pooled.row(b - first_block);
      for (int d = 0; d < dim; ++d) {
        float sum = 0;
        for (int64_t c = 0; c < block_cells; ++c) sum += raw_key(b * block_cells + c)[d];
        mean[d] = sum / static_cast<float>(block_cells);
      }
      positions.push_back(b * block_cells);
    }
    rms_norm(lc.kernels, pooled, w.k_norm, lc.config.rms_eps, pooled);
    RopeTable& rope = lc.scratch.block_rope;
    rope.fill(positions, lc.config.attention.n_rot, lc.config.attention.rope_theta);
    apply_rope(lc.kernels, rope, lc.config.attention.rope_pairs, 1, dim, pooled);
  }
  for (int64_t cell = std::max(part.first_cell, end - AttentionState::kRawRing); cell < end; ++cell)
    std::memcpy(state.raw.data() + cell % AttentionState::kRawRing * dim, raw_key(cell),
                static_cast<size_t>(dim) * sizeof(float));
}

}  // namespace

void attention_layer(LayerContext& lc, const Batch& batch, const AttentionWeights& w, int block,
                     int block_cells, TensorView<const float> x, TensorView<float> y) {
  KernelContext& kernels = lc.kernels;
  const ModelConfig& c = lc.config;
  const AttentionConfig& a = c.attention;
  const int head_dim = a.shape.head_dim;
  const int64_t T = batch.n_rows;
  Scratch& s = lc.scratch;
  const TensorView<float> q = s.q.slice_rows(0, T);
  const TensorView<float> k = s.k.slice_rows(0, T);
  const TensorView<float> v = s.v.slice_rows(0, T);

  const TensorView<float> q_and_gate = s.q_and_gate.slice_rows(0, T);
  const TensorView<float> index_q = s.index_q.slice_rows(0, T);
  MatmulOutput projections[5] = {{w.q, a.output_gate ? q_and_gate : q}, {w.k, k}, {w.v, v}};
  size_t n_projections = 3;
  if (block_cells > 0) {
    projections[n_projections++] = {w.indexer.q, index_q};
    projections[n_projections++] = {w.indexer.k, s.index_k.slice_rows(0, T)};
  }
  matmul(kernels, std::span<const MatmulOutput>(projections, n_projections), x);
  if (a.output_gate) split_query_and_gate(q_and_gate, a.shape.n_heads, head_dim, q, s.q_gate);
  if (a.bias) {
    add_bias(kernels, w.q_bias.data(), q);
    add_bias(kernels, w.k_bias.data(), k);
    add_bias(kernels, w.v_bias.data(), v);
  }
  if (a.qk_norm) {
    rms_norm(kernels, as_heads(q, head_dim), w.q_norm, c.rms_eps, as_heads(q, head_dim));
    rms_norm(kernels, as_heads(k, head_dim), w.k_norm, c.rms_eps, as_heads(k, head_dim));
  }
  apply_rope(kernels, s.rope, a.rope_pairs, a.shape.n_heads, head_dim, q);
  apply_rope(kernels, s.rope, a.rope_pairs, a.shape.n_kv_heads, head_dim, k);

  if (block_cells > 0) {
    const int dim = c.indexer.head_dim;
    rms_norm(kernels, as_heads(index_q, dim), w.indexer.q_norm, c.rms_eps, as_heads(index_q, dim));
    apply_rope(kernels, s.rope, a.rope_pairs, c.indexer.n_heads, dim, index_q);
  }

  for (const Batch::Part& part : batch.parts) {
    AttentionState& state = part.state->attention(block);
    write_rows(kernels.isa(), state.keys, part.first_cell, k.slice_rows(part.first_row, part.n_rows));
    write_rows(kernels.isa(), state.values, part.first_cell, v.slice_rows(part.first_row, part.n_rows));
    if (block_cells > 0) append_index_keys(lc, part, w.indexer, block_cells, s.index_k, state);
    choose_cells(lc, part, block_cells, state);
    const TensorView<float> rows = q.slice_rows(part.first_row, part.n_rows);
    attend(kernels, a.shape, rows, state.keys, state.values,
           std::span(s.range_spans).subspan(part.first_row, part.n_rows), rows);
  }
  if (a.output_gate) sigmoid_mul(kernels, q, s.q_gate.slice_rows(0, T), q);
  matmul(kernels, w.output, q, y);
}

}  // namespace forebay
