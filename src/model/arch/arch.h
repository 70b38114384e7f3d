/// The trunks: what happens between a token and the residual after the last block. One file per shape of
/// network; which tensors a family has is weights.cpp's business.
#pragma once

#include <span>

#include "model/layers/layers.h"
#include "model/weights.h"
#include "model/window.h"

namespace forebay {

/// llama, qwen2, qwen3, qwen3moe, qwen3next, qwen35moe: one residual stream, a norm before each sub-block.
Result<void> run_prenorm_blocks(LayerContext& lc, const Batch& batch, const Weights& w,
                                TensorView<float> residual_TD);
/// `next` is the block after it, whose experts are read ahead; null: none.
Result<void> run_prenorm_block(LayerContext& lc, const Batch& batch, const BlockWeights& w, int block,
                               const BlockWeights* next, TensorView<float> residual_TD);

/// qwen4exp: several streams read and written through hyper-connections, an n-gram table at one block.
Result<void> run_hyper_blocks(LayerContext& lc, const Batch& batch, const Weights& w,
                              TensorView<float> streams_TW);
Result<void> run_hyper_block(LayerContext& lc, const Batch& batch, const BlockWeights& w, int block,
                             const BlockWeights* next, int block_cells, TensorView<float> streams_TW);

/// The draft head's block over prepared pairs; leaves its residual in residual_TW.
Result<void> run_draft_block(LayerContext& lc, const Batch& batch, const Weights& w,
                             TensorView<const float> hidden, TensorView<float> residual_TW);

/// Embedding rows of the batch's tokens.
void embed(LayerContext& lc, const MatrixView& embedding, std::span<const int32_t> tokens,
           TensorView<float> out_TD);

}  // namespace forebay
