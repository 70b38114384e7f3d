/// The sub-blocks of all families. Each reads input_TD's rows and writes output rows; only the states of the
/// batch change. Rows are independent but for the states they share.
#pragma once

#include <span>

#include "core/function_ref.h"
#include "experts/expert_source.h"
#include "kernels/context.h"
#include "kernels/router.h"
#include "model/config.h"
#include "model/layers/scratch.h"
#include "model/weights.h"
#include "model/window.h"

namespace forebay {

/// Cache-aware routing: changes results, off with lambda 0.
struct RoutingOptions {
  RouteBias decode;
  RouteBias prompt = {.lambda = 0, .protect = 4};
};

struct LayerContext {
  KernelContext& kernels;
  const ModelConfig& config;
  Scratch& scratch;
  ExpertSource& experts;
  const RoutingOptions& routing;
  RouteObserver* trace = nullptr;
  bool draft = false;  // rows of a draft head
};

/// What the next block's router will probably see, for reading its experts ahead.
struct LookAhead {
  const MatrixView* router;                    // D -> E
  FunctionRef<void(TensorView<float>)> input;  // fills [T, D] from the stream as it is now
};

/// Softmax attention over each part's own cells, dense or block-sparse (block_cells > 0), with optional
/// output gate, q/k norms and biases. Source: Qwen4Exp and Qwen3-Next model definitions;
/// docs/architectures.md.
void attention_layer(LayerContext& lc, const Batch& batch, const AttentionWeights& w, int block,
                     int block_cells, TensorView<const float> x_TD, TensorView<float> y_TD);

/// Which cells each row of the part sees, into scratch.ranges and range_spans: all up to its own, or
/// (block_cells > 0) the best blocks by scratch.index_q and the tail. Codes of new blocks are made here.
void choose_cells(LayerContext& lc, const Batch::Part& part, int block_cells, AttentionState& state);

/// Gated DeltaNet: short convolution, delta rule, gated norm.
void gated_delta_layer(LayerContext& lc, const Batch& batch, const GatedDeltaWeights& w, int block,
                       TensorView<const float> x_TD, TensorView<float> y_TD);

/// Dense SwiGLU, or routed experts plus the gated shared expert. Asks for the routed set at once; the shared
/// expert runs while missing experts are read, and `next` (null: none) is looked at meanwhile. Errors: the
/// expert source's.
Result<void> ffn_layer(LayerContext& lc, const Batch& batch, const FfnWeights& w, int block,
                       const LookAhead* next, TensorView<const float> x_TD, TensorView<float> y_TD);

/// Hyper-connection read: streams -> sub-block input. Leaves the write gates in scratch.inject_TH when the
/// weights have an inject matrix.
void read_hyper_connection(LayerContext& lc, const HyperConnectionWeights& w,
                           TensorView<const float> streams_TW, TensorView<float> x_TD);
/// Adds a sub-block's output to every stream, by the gates of the read before it.
void write_hyper_connection(LayerContext& lc, TensorView<const float> y_TD, TensorView<float> streams_TW);

/// Hashed n-gram embedding added to the streams. Reads token ids, not activations.
void ngram_injection(LayerContext& lc, const Batch& batch, const NgramWeights& w,
                     TensorView<float> streams_TW);

/// A table that is small enough to stay in memory by itself needs no hints.
bool is_large(const NgramWeights& w);

/// Starts reading the rows of a large table that the window will need: they hang on token ids alone. The
/// injection gives up the rows used longest ago, down to kNgramRowsBytes.
void ngram_read_ahead(LayerContext& lc, const Batch& batch, const NgramWeights& w);

/// Table rows of one position: `history[0]` is the current token, then the ones before it; fewer than
/// ngram_size near the sequence start. rows has n_heads entries.
void ngram_row_ids(const NgramConfig& config, std::span<const int32_t> history, int64_t* rows);

}  // namespace forebay
