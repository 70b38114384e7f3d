#include "model/window_undo.h"

#include <algorithm>

#include "core/ensure.h"
#include "kernels/causal_conv.h"
#include "kernels/gated_delta.h"
#include "model/state.h"

namespace forebay {
namespace {

/// Hands out pieces of a buffer, or only counts them.
class Pieces {
 public:
  explicit Pieces(float* memory) : memory_(memory) {}
  std::span<float> take(int64_t n) {
    float* at = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += n;
    return {at, memory_ == nullptr ? 0 : static_cast<size_t>(n)};
  }
  TensorView<float> take_rows(int64_t width) {
    float* at = take(WindowUndo::kMaxRows * width).data();
    return {at, WindowUndo::kMaxRows, width};
  }
  int64_t used() const { return used_; }

 private:
  float* memory_;
  int64_t used_ = 0;
};

void copy(std::span<const float> from, std::span<float> to) {
  ENSURE(from.size() == to.size(), "undo: a piece of another size");
  std::copy(from.begin(), from.end(), to.begin());
}

void copy_rows(TensorView<const float> from, TensorView<float> to) {
  ENSURE(from.rows <= to.rows && from.cols == to.cols, "undo: more rows than can be undone");
  for (int64_t t = 0; t < from.rows; ++t) std::copy_n(from.row(t), from.cols, to.row(t));
}

/// Slot of cell first + i in a ring of raw index keys.
std::span<float> slot(std::span<float> ring, int64_t cell, int64_t width) {
  return ring.subspan(static_cast<size_t>(cell % AttentionState::kRawRing * width),
                      static_cast<size_t>(width));
}

}  // namespace

Result<std::unique_ptr<WindowUndo>> WindowUndo::create(const ModelConfig& c, MemoryBudget& budget) {
  std::unique_ptr<WindowUndo> undo(new WindowUndo);
  undo->gated_delta_.resize(c.n_blocks);
  undo->rings_.resize(c.n_blocks);
  const auto lay_out = [&](Pieces& pieces) {
    for (int i = 0; i < c.n_blocks; ++i) {
      if (c.mixers[i] == MixerKind::kGatedDelta) {
        const GatedDeltaConfig& g = c.gated_delta;
        GatedDelta& d = undo->gated_delta_[i];
        d.matrix = pieces.take(static_cast<int64_t>(g.shape.n_v_heads) * g.shape.k_dim * g.shape.v_dim);
        d.conv = pieces.take(static_cast<int64_t>(g.conv_kernel - 1) * g.conv_channels());
        d.conv_inputs = pieces.take_rows(g.conv_channels());
        d.k = pieces.take_rows(g.key_width());
        d.v = pieces.take_rows(g.value_width());
        d.decay = pieces.take_rows(g.shape.n_v_heads);
        d.beta = pieces.take_rows(g.shape.n_v_heads);
      } else if (c.block_cells[i] != 0) {
        undo->rings_[i].rows = pieces.take(kMaxRows * c.indexer.head_dim);
      }
    }
    if (c.has_mixer(MixerKind::kGatedDelta)) undo->out_ = pieces.take_rows(c.gated_delta.value_width());
    if (c.ngram.block >= 0) {
      undo->ngram_conv_ = pieces.take(static_cast<int64_t>(c.ngram.history_rows()) * c.wide());
      undo->ngram_inputs_ = pieces.take_rows(c.wide());
    }
  };
  Pieces size(nullptr);
  lay_out(size);
  undo->buffer_ = TRY(
      Buffer::allocate(budget, static_cast<uint64_t>(size.used()) * sizeof(float), "undo of draft windows"));
  Pieces pieces(undo->buffer_.as<float>().data());
  lay_out(pieces);
  return undo;
}

void WindowUndo::arm(SequenceState& state) {
  phase_ = Phase::kArmed;
  n_rows_ = 0;
  first_cell_ = state.n_cells();
  tail_.assign(state.token_tail().begin(), state.token_tail().end());
  for (size_t b = 0; b < rings_.size(); ++b) {
    if (rings_[b].rows.empty()) continue;
    const int64_t width = static_cast<int64_t>(rings_[b].rows.size()) / kMaxRows;
    for (int64_t i = 0; i < kMaxRows; ++i)
      copy(slot(state.attention(static_cast<int>(b)).raw, first_cell_ + i, width),
           rings_[b].rows.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width)));
  }
}

void WindowUndo::forget() {
  phase_ = Phase::kIdle;
  n_rows_ = 0;
}

void WindowUndo::record_conv(int block, std::span<const float> conv, TensorView<const float> inputs) {
  copy(conv, gated_delta_[block].conv);
  copy_rows(inputs, gated_delta_[block].conv_inputs);
}

void WindowUndo::record_delta(int block, std::span<const float> matrix, TensorView<const float> k,
                              TensorView<const float> v, TensorView<const float> decay,
                              TensorView<const float> beta) {
  GatedDelta& d = gated_delta_[block];
  copy(matrix, d.matrix);
  copy_rows(k, d.k);
  copy_rows(v, d.v);
  copy_rows(decay, d.decay);
  copy_rows(beta, d.beta);
}

void WindowUndo::record_ngram(std::span<const float> conv, TensorView<const float> inputs) {
  copy(conv, ngram_conv_);
  copy_rows(inputs, ngram_inputs_);
}

void WindowUndo::complete(std::span<const int32_t> tokens) {
  tokens_.assign(tokens.begin(), tokens.end());
  n_rows_ = static_cast<int64_t>(tokens.size());
  phase_ = Phase::kComplete;
}

std::vector<int32_t> WindowUndo::cut(KernelContext& ctx, const ModelConfig& c, int64_t n,
                                     SequenceState& state) {
  for (int b = 0; b < c.n_blocks; ++b) {
    GatedDelta& d = gated_delta_[b];
    if (!d.matrix.empty()) {
      GatedDeltaState& to = state.gated_delta(b);
      copy(d.matrix, to.matrix);
      copy(d.conv, to.conv);
      if (n > 0) {
        // The outputs are not asked for: keys serve as queries.
        gated_delta_rule(ctx, c.gated_delta.shape, d.k.slice_rows(0, n), d.k.slice_rows(0, n),
                         d.v.slice_rows(0, n), d.decay.slice_rows(0, n), d.beta.slice_rows(0, n),
                         to.matrix.data(), out_.slice_rows(0, n));
        const GatedDeltaConfig& g = c.gated_delta;
        push_history(d.conv_inputs.slice_rows(0, n),
                     TensorView<float>(to.conv.data(), g.conv_kernel - 1, g.conv_channels()));
      }
    }
    if (!rings_[b].rows.empty()) {
      const int64_t width = static_cast<int64_t>(rings_[b].rows.size()) / kMaxRows;
      for (int64_t i = n; i < n_rows_; ++i)
        copy(rings_[b].rows.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width)),
             slot(state.attention(b).raw, first_cell_ + i, width));
    }
  }
  if (c.ngram.block >= 0) {
    copy(ngram_conv_, state.ngram_conv());
    if (n > 0)
      push_history(ngram_inputs_.slice_rows(0, n),
                   TensorView<float>(state.ngram_conv().data(), c.ngram.history_rows(), c.wide()));
  }
  std::vector<int32_t> tail = tail_;
  tail.insert(tail.end(), tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(n));
  return tail;
}

}  // namespace forebay
